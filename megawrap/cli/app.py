"""From words to an exit code: find the verb, run it, render what went wrong."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from megawrap import __version__
from megawrap.cli import hydra_mode, render
from megawrap.cli.verbs import VERBS, parse
from megawrap.errors import Interrupted, MegawrapError


def main(words: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 the run failed, 2 the configuration or command is wrong,
    3 preflight failed, 4 does not fit, 5 no resource to run on, 130 interrupted."""
    words = list(sys.argv[1:] if words is None else words)
    if words == ["--version"]:
        sys.stdout.write(f"megawrap {__version__}\n")
        return 0
    # What follows -- is another command's.
    own = words[: words.index("--")] if "--" in words else words
    as_json = "--json" in own
    try:
        if hydra_mode.wanted(own):
            return hydra_mode.run(words)
        invocation = parse(words)
        return VERBS[invocation.verb].run(invocation)
    except MegawrapError as failed:
        render.findings(failed.findings, as_json=as_json)
        return failed.exit_code
    except (Interrupted, KeyboardInterrupt):
        render.note("interrupted; no process is left behind")
        return Interrupted.exit_code
