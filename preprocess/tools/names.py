"""Names of datasets as people give them, and names that cannot be written to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from megawrap.errors import Finding, nearest
from megawrap.preprocess.indexed.header import broken

_SUFFIXES = (".bin", ".idx")


def prefixes(words: Sequence[str]) -> list[str]:
    """Prefixes of datasets; with the suffix of one of their files they mean the same, and once is enough then.

    So ``shards/*`` and ``shards/*.idx`` of a shell name each dataset of a folder once.
    """
    found: list[str] = []
    files: set[str] = set()
    for word in words:
        is_file = word.endswith(_SUFFIXES)
        prefix = word[:-4] if is_file else word
        if is_file and prefix in files:
            continue
        files |= {prefix} if is_file else set()
        found.append(prefix)
    return found


def absent(prefix: str) -> Finding:
    """There is no dataset of this name; those of the same folder that are called alike may be meant."""
    path = Path(prefix)
    there = [file.name.removesuffix(".idx") for file in path.parent.glob("*.idx")] if path.parent.is_dir() else []
    close = tuple(str(path.parent / name) for name in nearest(path.name, there))
    found = broken("MW640", f"{prefix}: there is no {path.name}.bin and no {path.name}.idx")
    return Finding(id=found.id, message=found.message, keys=found.keys, nearest=close)


def is_absent(prefix: str) -> bool:
    """Whether neither file of a dataset is there."""
    return not any(Path(f"{prefix}{suffix}").exists() for suffix in _SUFFIXES)


def refusals(output: str, inputs: Sequence[str], option: str, *, overwrite: bool) -> Iterator[Finding]:
    """Why ``output`` cannot be the name of a new dataset that is made from ``inputs``."""
    if output.endswith(_SUFFIXES):
        message = f"{option} {output}: it is a name without .bin and .idx"
        yield Finding(id="MW661", message=message, keys=(option,), nearest=(f"{option} {output[:-4]}",))
    if Path(output).name in ("", ".", ".."):
        yield Finding(id="MW661", message=f"{option} {output}: it ends in no name", keys=(option,))
    elif any(_is_same(output, prefix) for prefix in inputs):
        yield Finding(id="MW661", message=f"{option} {output}: it is read, so it cannot be written", keys=(option,))
    elif not overwrite and not is_absent(output):
        message = f"{option} {output}: it is there already"
        yield Finding(id="MW661", message=message, keys=(option,), nearest=("--overwrite",))


def _is_same(a: str, b: str) -> bool:
    return Path(f"{a}.idx").resolve() == Path(f"{b}.idx").resolve()
