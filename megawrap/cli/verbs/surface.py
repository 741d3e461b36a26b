"""Which arguments a Megatron-LM accepts, how that is known, and what is different from the nearest release."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from typing import TYPE_CHECKING, Any

import orjson

from megawrap.cli import render
from megawrap.cli.verbs import common
from megawrap.config.sections.place import Megatron
from megawrap.errors import ConfigError, Finding, nearest
from megawrap.megatron.surface import WAYS, Target, difference, releases, resolve

if TYPE_CHECKING:
    from megawrap.cli.verbs import Invocation

HELP = "The arguments of a Megatron-LM, against its nearest release: surface [PATH | installed | RELEASE]."


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of ``surface``."""
    parser.add_argument("--way", choices=WAYS, help="only this way: ask its parser, or read its source")
    parser.add_argument("--refresh", action="store_true", help="do not use what the cache holds")


def run(invocation: Invocation) -> int:
    """Show the surface; exit code 2 when the way that was asked for gives none."""
    options = invocation.options
    target = _target(options)
    if options.way and target.way != options.way:
        raise ConfigError(_refused(target, options.way))
    if options.json:
        sys.stdout.write(orjson.dumps(as_dict(target), option=orjson.OPT_INDENT_2).decode() + "\n")
        return 0
    from megawrap.cli.show_surface import show

    show(target, difference(target.release.surface, target.surface))
    render.findings(target.findings, as_json=False)
    return 0


def as_dict(target: Target) -> dict[str, Any]:
    """The documented object."""
    found = target.correction
    return {
        "megatron": target.as_dict(),
        "arguments": len(target.surface),
        **difference(target.release.surface, target.surface).as_dict(),
        "reasons": list(found.reasons) if found else [],
        "notes": list(found.notes) if found else [],
        "findings": [finding.as_dict() for finding in target.findings],
    }


def _target(options: argparse.Namespace) -> Target:
    names = [word for word in options.words if "=" not in word]
    options.words = [word for word in options.words if "=" in word]
    if len(names) > 1:
        raise ConfigError(Finding(id="MW008", message=f"surface of which one? {' or '.join(names)}"))
    config = common.composed(options).config
    megatron = _named(names[0], config.megatron) if names else config.megatron
    return resolve(megatron, config.launcher.python, way=options.way, refresh=options.refresh)


def _named(word: str, megatron: Megatron) -> Megatron:
    known = [one.id for one in releases()]
    if word == "installed":
        return dataclasses.replace(megatron, source="installed")
    if word in known:
        return dataclasses.replace(megatron, source="release", release=word)
    if "/" in word or os.access(word, os.F_OK):
        return dataclasses.replace(megatron, source="checkout", path=word)
    message = f"{word!r} is neither a folder, nor installed, nor a release: {', '.join(known)}"
    raise ConfigError(Finding(id="MW011", message=message, nearest=nearest(word, [*known, "installed"])))


def _refused(target: Target, way: str) -> Finding:
    reasons = target.correction.reasons if target.correction else ("only a source tree has one",)
    return Finding(id="MW017", message=f"{target.name}: no arguments from its {way} ({'; '.join(reasons)})")
