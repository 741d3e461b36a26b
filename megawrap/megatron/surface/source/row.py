"""An argument as a source tree tells it."""

from __future__ import annotations

import dataclasses
from typing import Any

from megawrap.megatron.surface.argument import Argument
from megawrap.megatron.surface.source.values import Unknown, plain


@dataclasses.dataclass(eq=False)
class Row:
    """An argument as far as the source tells. ``unknown`` names the fields that it does not; ``maybe`` is a row that is
    there only under a condition which the source does not decide."""

    flags: list[str]
    dest: str
    action: str
    type: str | None
    nargs: Any
    choices: list[Any] | None
    default: Any
    unknown: set[str]
    maybe: bool = False

    @property
    def option_strings(self) -> list[str]:
        """The flags, as argparse calls them: for source that reads its own parser."""
        return self.flags

    def is_made_by(self, name: str) -> bool:
        """Whether ``name`` is argparse's class of this action."""
        words = {"store": "_StoreAction", "store_true": "_StoreTrueAction", "store_false": "_StoreFalseAction"}
        return name.split(".")[-1] == words.get(self.action)

    def change(self, name: str, value: Any) -> None:
        """What source does to its parser's own actions."""
        self.unknown.discard(name)
        try:
            setattr(self, name, plain(value))
        except Unknown:
            self.unknown.add(name)

    @classmethod
    def of(cls, known: Argument) -> Row:
        """A row of a release."""
        choices = None if known.choices is None else list(known.choices)
        head = (list(known.flags), known.dest, known.action, known.type)
        return cls(*head, known.nargs, choices, known.default, set())

    def as_dict(self) -> dict[str, Any]:
        """The row."""
        names = ("flags", "dest", "action", "type", "nargs", "choices", "default")
        shown = {name: getattr(self, name) for name in names}
        return {name: value for name, value in shown.items() if value is not None}

    def settle(self, known: Argument | None) -> None:
        """Take what the source does not tell from a release's row of the same flag."""
        for name in self.unknown - {"dest"} if known is None else self.unknown:
            value = getattr(known, name, None)
            setattr(self, name, list(value) if isinstance(value, tuple) else value)
