"""An existing training command → a folder of configuration whose plan has the same effective arguments."""

from __future__ import annotations

import dataclasses
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from megawrap.config import schema
from megawrap.config.compose import compose
from megawrap.config.sections.root import Config
from megawrap.errors import ConfigError, Finding
from megawrap.importing import presets, writing
from megawrap.importing.arguments import Arguments, read_arguments
from megawrap.importing.command import Command, Unplaced
from megawrap.importing.roundtrip import Difference, differences
from megawrap.importing.settle import Settled, literal, nested, settle
from megawrap.importing.wanted import Wanted
from megawrap.megatron.surface import Target, resolve

# What a user may choose beside the command: the Megatron whose dialect it is, and what no command tells.
OWN_GROUPS = ("megatron", "cluster")


@dataclasses.dataclass(frozen=True)
class Dialect:
    """The Megatron whose arguments a command has, and what the user says beside the command: ``overrides``, and
    ``config``, composed of them."""

    overrides: tuple[str, ...]
    config: Config
    target: Target

    @classmethod
    def of(cls, overrides: Sequence[str]) -> Dialect:
        """Read ``megatron=RELEASE``, ``megatron.path=DIR``, ``cluster=NAME``.

        Raises:
            ConfigError: for an override that is none of them, or an unknown release.
        """
        _refuse_other_keys(overrides)
        config = compose(overrides).config
        return cls(tuple(overrides), config, resolve(config.megatron))

    @property
    def groups(self) -> dict[str, str]:
        """Group → choice."""
        return {
            group: choice for group, _, choice in (word.partition("=") for word in self.overrides) if "." not in group
        }

    @property
    def keys(self) -> dict[str, Any]:
        """Key → value of the single keys."""
        names = (word.partition("=")[0] for word in self.overrides)
        return {name: schema.get(self.config, name) for name in names if "." in name}


@dataclasses.dataclass(frozen=True)
class Imported:
    """What came of a command. ``presets`` is group → choice where it is not the usual one; ``settled`` is what the file
    sets over them."""

    command: Command
    dialect: Dialect
    arguments: Arguments
    presets: Mapping[str, str]
    settled: Settled

    @property
    def target(self) -> Target:
        """The Megatron whose arguments they are."""
        return self.dialect.target

    @property
    def text(self) -> str:
        """The YAML file that says it."""
        tree = nested(self.settled.keys, self.settled.args)
        if self.command.environment:
            tree["env"] = {name: literal(value) for name, value in self.command.environment.items()}
        return writing.text(self.command.source, {**self.presets, **self.dialect.groups}, tree, self.unplaced)

    @property
    def unplaced(self) -> tuple[Unplaced, ...]:
        """Everything that the configuration does not hold."""
        return (*self.arguments.unplaced, *self.settled.unplaced, *self.command.unplaced)

    def differences_of(self, group: str) -> int:
        """How many keys of ``group`` are set differently from its preset."""
        return sum(key.startswith(f"{group}.") and key != f"{group}.name" for key in self.settled.keys)

    def check(self) -> list[Difference]:
        """Compile the written file back, through Hydra."""
        with tempfile.TemporaryDirectory() as folder:
            writing.fill(Path(folder), self.text)
            return differences(self.command, self.arguments, self.target, folder, writing.CONFIG_NAME)

    def write(self, folder: Path, *, force: bool = False) -> str:
        """Write the folder, whole or not at all, and return the command that plans it."""
        writing.write(folder, self.text, force=force)
        return shlex.join(["megawrap", "plan", "--config-dir", str(folder)])


def import_command(command: Command, dialect: Dialect) -> Imported:
    """Find the configuration of ``command``."""
    target = dialect.target
    arguments = read_arguments(command.arguments, target)
    wanted = Wanted(arguments, target, command.placed)
    chosen = presets.choose(wanted, command)
    settled = settle(chosen, dialect.overrides, wanted, arguments, target)
    settled = dataclasses.replace(settled, keys={**settled.keys, **_name(command, chosen), **dialect.keys})
    return Imported(command, dialect, arguments, chosen, settled)


def _refuse_other_keys(overrides: Sequence[str]) -> None:
    def is_own(word: str) -> bool:
        return word.partition("=")[0].partition(".")[0] in OWN_GROUPS and not word.startswith("megatron.args")

    wrong = [word for word in overrides if not is_own(word)]
    if wrong:
        message = (
            f"{wrong[0]}: import takes megatron=RELEASE, megatron.path=DIR and cluster=NAME; the command sets the rest"
        )
        raise ConfigError(Finding(id="MW035", keys=(wrong[0].partition("=")[0],), message=message))


def _name(command: Command, chosen: Mapping[str, str]) -> dict[str, Any]:
    """A model without a preset is called as the script or the program is."""
    if "model" in chosen:
        return {}
    return {"model.name": Path(command.program or "imported").stem if command.program else "imported"}
