"""``python -m megawrap.megatron.surface.make_fingerprints RELEASE=DIR ...`` writes the entries of releases in
``fingerprints.json`` anew, out of a source tree of each and what its own parser answers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from megawrap.megatron.surface import content
from megawrap.megatron.surface.argument import Argument
from megawrap.megatron.surface.ask import ask
from megawrap.megatron.surface.fingerprints import DATA, rows
from megawrap.megatron.surface.releases import release
from megawrap.megatron.surface.source import Tree, read

_ABOUT = "Bundled releases by the files that make their parser: sha256 over names and contents (content.py)."


def make(name: str, root: Path) -> dict[str, Any]:
    """The entry of a release, from a source tree of it.

    Raises:
        ConfigError: when there is no such release.
        NoAnswer: when the tree's parser cannot be asked.
        Unreadable: when the source does not tell which files make the parser.
        ValueError: when the tree has other arguments than the release.
    """
    known = release(name).surface
    tree = Tree(root)
    read(tree, known)
    answered = {one.flags: one for one in map(Argument.from_row, ask(root))}
    bundled = {one.flags: one for one in known.arguments}
    other = [flags[0] for flags in answered.keys() | bundled.keys() if answered.get(flags) != bundled.get(flags)]
    if other:
        raise ValueError(f"{root} has other arguments than {name}: {', '.join(sorted(other))}")
    files = sorted(tree.files)
    return {"release": name, "files": files, "sha256": content.combined(root, files)}


def main(words: Sequence[str]) -> None:
    """Write the entries of ``RELEASE=DIR ...``; those of other releases stay."""
    made = [make(name, Path(path).absolute()) for name, _, path in (word.partition("=") for word in words)]
    names = {row["release"] for row in made}
    write([*made, *(row for row in rows() if row["release"] not in names)])


def write(entries: list[dict[str, Any]]) -> None:
    """A line for each release, by name."""
    ordered = sorted(entries, key=lambda row: str(row["release"]))
    lines = ",\n".join(orjson.dumps(row).decode() for row in ordered)
    DATA.write_text(f'{{"about": {orjson.dumps(_ABOUT).decode()},\n"fingerprints": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
