"""What published tokenizers give, a family in a file: number of ids, special ids, and the ids of awkward texts."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable
from pathlib import Path

import yaml

_FOLDER = Path(__file__).parent


@dataclasses.dataclass(frozen=True, slots=True)
class Special:
    """A special token and its id."""

    token: str
    id: int


@dataclasses.dataclass(frozen=True, slots=True)
class Family:
    """Tokenizers that give the same ids."""

    key: str
    """Name of its file, and of its choice in conf/tokenizer/."""
    name: str
    presets: tuple[str, ...]
    """Other choices of conf/tokenizer/ that mean it."""
    vocab_sizes: tuple[int, ...]
    """Number of ids, added tokens included, of its releases."""
    template_adds_bos: bool
    """Whether its tokenizer.json puts BOS before a text."""
    special: dict[str, Special]
    """By role: bos, eos, unk, ..."""
    cases: tuple[tuple[str, tuple[int, ...]], ...]
    """Texts and their ids, without BOS and EOS."""

    @property
    def texts(self) -> list[str]:
        """The texts of the cases."""
        return [text for text, _ in self.cases]


@functools.cache
def families() -> dict[str, Family]:
    """All families, by key."""
    return {file.stem: _read(file) for file in sorted(_FOLDER.glob("*.yaml"))}


def family_of(preset: str | None) -> Family | None:
    """The family that a choice of conf/tokenizer/ means; None for one that has no vectors here."""
    return next((one for one in families().values() if preset in (one.key, *one.presets)), None)


def all_texts() -> Iterable[str]:
    """The texts of all families, each once."""
    return dict.fromkeys(text for one in families().values() for text in one.texts)


def _read(file: Path) -> Family:
    value = yaml.load(file.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return Family(
        key=file.stem,
        name=value["name"],
        presets=tuple(value["presets"]),
        vocab_sizes=tuple(value["vocab_sizes"]),
        template_adds_bos=value["template_adds_bos"],
        special={role: Special(**row) for role, row in value["special"].items()},
        cases=tuple((text, tuple(ids)) for text, ids in value["cases"]),
    )
