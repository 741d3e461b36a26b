"""The target's own verdict on a configuration, asked in a subprocess: slower than our rules, and always right."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import orjson

from megawrap.errors import Finding, ResourceError

WORKER = Path(__file__).with_name("worker.py")


@dataclasses.dataclass(frozen=True)
class Verdict:
    """``stage`` is where the target rejected the configuration, ``None`` where it accepted it; ``where`` the file and
    line; ``values`` its own final values of what was asked for."""

    stage: str | None
    message: str
    where: str = ""
    line: str = ""
    values: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def is_accepted(self) -> bool:
        """Whether nothing rejected it."""
        return self.stage is None


class Oracle:
    """A running worker; a context manager."""

    def __init__(self, tree: Path | None = None, python: str = sys.executable) -> None:
        """Start one for a source tree, or for the installed megatron-core.

        Raises:
            ResourceError: when the target cannot be imported there.
        """
        words = [python, str(WORKER), *([str(tree)] if tree else [])]
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - a pipe that nobody reads would fill up
        try:
            self._process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, text=True
            )
        except OSError as problem:
            self._said.close()
            raise ResourceError(_unasked(f"{python}: {problem.strerror}")) from None
        try:
            self.file = Path(self._answer()["file"])
        except ResourceError:
            self.close()
            raise

    def ask(
        self,
        argv: Sequence[str],
        world_size: int,
        environment: Mapping[str, str | None],
        want: Iterable[str] = (),
    ) -> Verdict:
        """Would the target accept ``argv`` on ``world_size`` ranks? ``want`` are dests whose final values to tell.

        Raises:
            ResourceError: when the worker died.
        """
        case = {
            "argv": list(argv),
            "world_size": world_size,
            "environment": dict(environment),
            "want": list(want),
        }
        assert self._process.stdin is not None
        self._process.stdin.write(orjson.dumps(case).decode() + "\n")
        self._process.stdin.flush()
        return Verdict(**self._answer())

    def close(self) -> None:
        """End the worker."""
        self._process.kill()
        self._process.communicate()
        self._said.close()

    def __enter__(self) -> Oracle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._said.seek(0)
            said = self._said.read().decode(errors="replace").strip().splitlines()
            raise ResourceError(_unasked(said[-1] if said else "its process ended"))
        answer: dict[str, Any] = orjson.loads(line)
        return answer


def _unasked(why: str) -> Finding:
    return Finding(id="MW730", message=f"Megatron cannot be asked: {why}", keys=("megatron.source",))
