"""The models that ship with megawrap, and yours."""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from megawrap.cli import render
from megawrap.config.compose import choices_of
from megawrap.config.models import with_model
from megawrap.config.origins import Origins
from megawrap.config.sections.place import Megatron
from megawrap.config.sections.root import Config
from megawrap.errors import ConfigError, Finding, errors, nearest
from megawrap.estimate.layers import feed_forward_size
from megawrap.estimate.parameters import active_parameters, total_parameters
from megawrap.megatron.compile import compile_arguments
from megawrap.megatron.surface import resolve

if TYPE_CHECKING:
    from megawrap.cli.verbs import Invocation

HELP = "List the models with their dimensions and computed number of parameters: models [PART OF A NAME]."
# Whose arguments and defaults are taken; what is counted is the same in all.
RELEASE = Megatron(source="release", release="core-0.19.0")
# Keys of the model's section that are listed as they are.
SHOWN = ("num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_query_groups", "kv_channels",
         "multi_latent_attention", "num_experts", "moe_router_topk", "moe_ffn_hidden_size",
         "max_position_embeddings", "rotary_base", "vocab_size", "tokenizer")  # fmt: skip


def configure(parser: argparse.ArgumentParser) -> None:
    """``models`` has no options of its own."""


def run(invocation: Invocation) -> int:
    """List the models; exit code 2 when a file of yours is wrong."""
    options = invocation.options
    rows: list[dict[str, Any]] = []
    found: list[Finding] = []
    for name in _wanted(options.words, choices_of("model", options.config_dir)):
        try:
            row = _row(name, with_model(name, options.config_dir))
        except ConfigError as problem:
            found += problem.findings
            continue
        rows.append(row)
        found += _miscounted(row)
    if options.json:
        answer = {"models": rows, "findings": [finding.as_dict() for finding in found]}
        sys.stdout.write(orjson.dumps(answer).decode() + "\n")
    else:
        from megawrap.cli.show_models import show

        show(rows)
        render.findings(found, as_json=False)
    return 2 if errors(found) else 0


def _wanted(parts: Sequence[str], names: Sequence[str]) -> list[str]:
    """The names that contain one of ``parts``; all without any.

    Raises:
        ConfigError: when a part is in no name.
    """
    unknown = [part for part in parts if not any(part in name for name in names)]
    if unknown:
        raise ConfigError([_unknown(part, names) for part in unknown])
    return [name for name in names if not parts or any(part in name for part in parts)]


def _unknown(part: str, names: Sequence[str]) -> Finding:
    message = f"no model has {part!r} in its name"
    return Finding(id="MW001", keys=("model",), message=message, nearest=nearest(part, names))


def _row(name: str, config: Config) -> dict[str, Any]:
    model, target = config.model, resolve(RELEASE)
    asked = Config(model=model, megatron=dataclasses.replace(RELEASE, args=config.megatron.args))
    values = target.surface.defaults() | compile_arguments(asked, target, lambda: Origins({})).values()
    return {
        "name": name,
        "family": _family(name),
        "parameters": total_parameters(values, model.vocab_size),
        "active_parameters": active_parameters(values, model.vocab_size),
        "published_parameters": model.parameters,
        **{key: getattr(model, key) for key in SHOWN},
        "num_query_groups": model.num_query_groups or model.num_attention_heads,
        "ffn_hidden_size": feed_forward_size(values) if model.hidden_size else None,
        "tied_embeddings": not model.untie_embeddings_and_output_weights,
    }


def _miscounted(row: Mapping[str, Any]) -> Iterator[Finding]:
    counted, said = row["parameters"], row["published_parameters"]
    if counted is not None and said is not None and counted != said:
        message = f"{row['name']} says {said:,} parameters, and its dimensions make {counted:,}"
        yield Finding(id="MW018", severity="warning", keys=("model.parameters",), message=message,
                      nearest=(f"model.parameters={counted}",))  # fmt: skip


def _family(name: str) -> str:
    """``llama31_8b`` → ``llama``."""
    letters = re.match(r"[^\W\d_]+", name)
    return letters.group() if letters else name
