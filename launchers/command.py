"""What a launcher makes of a step."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping

from megawrap.plan import Step


@dataclasses.dataclass(frozen=True)
class Command:
    """A step ready to start on each of ``hosts`` (none named: this machine). Words, never a shell string."""

    step: Step
    argv: tuple[str, ...]
    environment: Mapping[str, str | None]
    hosts: tuple[str, ...]

    def shell(self) -> str:
        """The same as a line for a POSIX shell, quoted."""
        unset = [word for name, value in self.environment.items() if value is None for word in ("-u", name)]
        given = [f"{name}={value}" for name, value in self.environment.items() if value is not None]
        return shlex.join(["env", *unset, *given, *self.argv])
