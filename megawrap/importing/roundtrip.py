"""Does the written configuration compile back to the original command? Answered from the files, through Hydra."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from megawrap.config.compose import Composed, compose
from megawrap.importing.arguments import Arguments
from megawrap.importing.command import Command, Unplaced
from megawrap.megatron.compile import compile_arguments
from megawrap.megatron.surface import Target
from megawrap.megatron.surface.parser import parse

# A program that is not placed trains another model: the same arguments then do not make the same training.
_COMPARED = ("argument", "environment", "program")


@dataclasses.dataclass(frozen=True)
class Difference:
    """One argument or variable with its value in the original command and in the compiled configuration. ``is_lost``:
    it could not be placed."""

    argument: str
    before: Any
    after: Any
    is_lost: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The JSON form, documented in docs/json.md."""
        return {"argument": self.argument, "before": self.before, "after": self.after}


def differences(command: Command, arguments: Arguments, target: Target, folder: str, name: str) -> list[Difference]:
    """What comes out differently. Words that could not be placed count: ``after`` is ``None`` for them."""
    composed = compose([], config_dir=folder, config_name=name)
    after = parse(target.surface, compile_arguments(composed.config, target, lambda: composed.origins).argv())
    found = [
        Difference(dest, before, after.get(dest))
        for dest, before in arguments.values.items()
        if before != after.get(dest)
    ]
    lost = [one for one in (*arguments.unplaced, *command.unplaced) if one.kind in _COMPARED]
    return [*found, *(_lost(one) for one in lost if one.needed), *_variables(command.environment, composed)]


def _lost(one: Unplaced) -> Difference:
    """A flag and its words, a variable and its value, or words alone."""
    name, _, value = one.words.partition("=" if one.kind == "environment" else " ")
    return Difference(name, value or name, None, is_lost=True)


def _variables(environment: Mapping[str, str | None], composed: Composed) -> list[Difference]:
    own = composed.config.env
    return [Difference(name, value, own.get(name)) for name, value in environment.items() if value != own.get(name)]
