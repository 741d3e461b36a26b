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
class Imported:
    """What came of a command. ``presets`` is group → choice where it is not the usual one; ``keys`` and ``args`` are
    what the file sets over them."""

    command: Command
    target: Target
    arguments: Arguments
    presets: Mapping[str, str]
    settled: Settled
    text: str

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
        return shlex.join(["megawrap", "plan", "--config-dir", str(folder), "--config-name", writing.CONFIG_NAME])


def import_command(command: Command, overrides: Sequence[str] = ()) -> Imported:
    """Find the configuration of ``command``. ``overrides`` choose the dialect (``megatron=RELEASE``) and the cluster.

    Raises:
        ConfigError: for an override that is neither, or an unknown release.
    """
    _refuse_other_keys(overrides)
    config = compose(overrides).config
    target = resolve(config.megatron)
    arguments = read_arguments(command.arguments, target)
    wanted = Wanted(arguments, target, command.placed)
    words = " ".join([command.program or "", *(word.text for word in command.arguments)])
    chosen = presets.choose(wanted, words)
    settled = settle(chosen, overrides, wanted, arguments, target)
    settled = dataclasses.replace(settled, keys={**settled.keys, **_name(command, chosen)})
    own = {key: schema.get(config, key) for key in (word.partition("=")[0] for word in overrides) if "." in key}
    settled = dataclasses.replace(settled, keys={**settled.keys, **own})
    text = _text(command, arguments, chosen, settled, overrides)
    return Imported(command, target, arguments, chosen, settled, text)


def _refuse_other_keys(overrides: Sequence[str]) -> None:
    def is_own(word: str) -> bool:
        return word.partition("=")[0].partition(".")[0] in OWN_GROUPS and not word.startswith("megatron.args")

    wrong = [word for word in overrides if not is_own(word)]
    if wrong:
        message = f"{wrong[0]}: import takes megatron=RELEASE, megatron.path=DIR and cluster=NAME; the command sets the rest"
        raise ConfigError(Finding(id="MW035", keys=(wrong[0].partition("=")[0],), message=message))


def _name(command: Command, chosen: Mapping[str, str]) -> dict[str, Any]:
    """A model without a preset is called as the script or the program is."""
    if "model" in chosen:
        return {}
    return {"model.name": Path(command.program or "imported").stem if command.program else "imported"}


def _text(
    command: Command, arguments: Arguments, chosen: Mapping[str, str], settled: Settled, overrides: Sequence[str]
) -> str:
    groups = {group: choice for group, _, choice in (word.partition("=") for word in overrides) if "." not in group}
    tree = nested(settled.keys, settled.args)
    if command.environment:
        tree["env"] = {name: literal(value) for name, value in command.environment.items()}
    unplaced = (*arguments.unplaced, *settled.unplaced, *command.unplaced)
    return writing.text(command.source, {**chosen, **groups}, tree, unplaced)
