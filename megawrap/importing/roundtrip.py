"""Does the written configuration compile back to the original command? Answered from the files, through Hydra."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from megawrap.config.compose import Composed, compose
from megawrap.importing.arguments import Arguments
from megawrap.importing.command import Command
from megawrap.megatron.compile import compile_arguments
from megawrap.megatron.surface import Target
from megawrap.megatron.surface.parser import parse


@dataclasses.dataclass(frozen=True)
class Difference:
    """One argument or variable with its value in the original command and in the compiled configuration."""

    argument: str
    before: Any
    after: Any

    def as_dict(self) -> dict[str, Any]:
        """The JSON form, documented in docs/json.md."""
        return dataclasses.asdict(self)


def differences(command: Command, arguments: Arguments, target: Target, folder: str, name: str) -> list[Difference]:
    """What comes out differently. Words that could not be placed count: ``after`` is ``None`` for them."""
    composed = compose([], config_dir=folder, config_name=name)
    after = parse(target.surface, compile_arguments(composed.config, target, lambda: composed.origins).argv())
    found = [
        Difference(dest, before, after.get(dest))
        for dest, before in arguments.values.items()
        if before != after.get(dest)
    ]
    lost = [one for one in (*arguments.unplaced, *command.unplaced) if one.kind in ("argument", "environment")]
    found += [Difference(one.words, one.words, None) for one in lost if one.needed]
    return [*found, *_variables(command.environment, composed)]


def _variables(environment: Mapping[str, str | None], composed: Composed) -> list[Difference]:
    own = composed.config.env
    return [Difference(name, value, own.get(name)) for name, value in environment.items() if value != own.get(name)]
