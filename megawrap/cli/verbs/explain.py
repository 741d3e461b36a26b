"""What a key means, what it becomes, and who set it; or what a rule says."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

import orjson

from megawrap.catalog import catalog
from megawrap.cli import render
from megawrap.cli.verbs import common
from megawrap.config import schema
from megawrap.config.compose import Composed
from megawrap.errors import ConfigError, Finding, nearest
from megawrap.megatron.surface import resolve

if TYPE_CHECKING:
    from megawrap.cli.verbs import Invocation

HELP = "What a key means, the Megatron argument it becomes, its value and who set it: explain KEY [OVERRIDES]."


def configure(parser: argparse.ArgumentParser) -> None:
    """``explain`` has no options of its own."""


def run(invocation: Invocation) -> int:
    """Explain each word that is not an override."""
    options = invocation.options
    names = [word for word in options.words if "=" not in word]
    options.words = [word for word in options.words if "=" in word]
    if not names:
        raise ConfigError(Finding(id="MW008", message="explain what? A key such as parallel.tp, a section, or a rule"))
    rows = [row for name in names for row in explain(name, common.composed(options))]
    if options.json:
        sys.stdout.write(orjson.dumps({"explained": rows, "findings": []}).decode() + "\n")
    else:
        render.explained(rows)
    return 0


def explain(name: str, composed: Composed) -> list[dict[str, Any]]:
    """Rows for a key, for every key of a section, or for a rule.

    Raises:
        ConfigError: when there is neither.
    """
    if name in catalog():
        return [{"rule": name, **catalog()[name]}]
    keys = [key for key in schema.fields() if key == name or key.startswith(f"{name}.")]
    if not keys:
        known = [*schema.fields(), *schema.sections(), *catalog()]
        message = f"{name}: there is no such key, section or rule"
        raise ConfigError(Finding(id="MW002", keys=(name,), message=message, nearest=nearest(name, known)))
    return [_row(schema.fields()[key], composed) for key in keys]


def _row(field: schema.Field, composed: Composed) -> dict[str, Any]:
    option = resolve(composed.config.megatron).surface.option(field.flag) if field.flag else None
    accepts = option.store.choices if option and option.store else field.choices
    return {
        "key": field.key,
        "means": field.doc,
        "type": field.type,
        "argument": field.flag,
        "choices": [str(one) for one in accepts or ()],
        "megatron_default": option.default if option else None,
        "value": schema.get(composed.config, field.key),
        "origin": list(composed.origins.of(field.key)),
    }
