"""One argument of Megatron's parser, as argparse holds it."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True)
class Argument:
    """A row of the surface. ``type`` is the name of the converter (``int``, ``enum``, ``moe_freq_type``, ...)."""

    flags: tuple[str, ...]
    dest: str
    action: str
    type: str | None = None
    nargs: str | int | None = None
    choices: tuple[Any, ...] | None = None
    default: Any = None

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> Argument:
        """From a row of ``arguments.json``."""
        choices, nargs = row.get("choices"), row.get("nargs")
        return cls(
            flags=tuple(row["flags"]),
            dest=row["dest"],
            action=row["action"],
            type=row.get("type"),
            nargs=int(nargs) if nargs is not None and str(nargs).isdigit() else nargs,
            choices=None if choices is None else tuple(choices),
            default=row.get("default"),
        )

    @property
    def flag(self) -> str:
        """The spelling to emit."""
        return self.flags[0]

    @property
    def takes_value(self) -> bool:
        """Whether words follow the flag."""
        return self.action == "store"
