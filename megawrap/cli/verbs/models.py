"""The models that ship with megawrap, and yours."""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING, Any

import orjson

from megawrap.config.compose import choices_of, compose
from megawrap.estimate.parameters import active_parameters, total_parameters
from megawrap.megatron.compile import compile_arguments
from megawrap.megatron.surface import resolve

if TYPE_CHECKING:
    from megawrap.cli.verbs import Invocation

HELP = "List the models with their dimensions and computed number of parameters."


def configure(parser: argparse.ArgumentParser) -> None:
    """``models`` has no options of its own."""


def run(invocation: Invocation) -> int:
    """List the models."""
    options = invocation.options
    names = choices_of("model", options.config_dir)
    rows = [_row(name, options.config_dir) for name in names]
    if options.json:
        sys.stdout.write(orjson.dumps({"models": rows, "findings": []}).decode() + "\n")
        return 0
    from megawrap.cli.show_models import show

    show(rows)
    return 0


def _row(name: str, config_dir: str | None) -> dict[str, Any]:
    composed = compose([f"model={name}"], config_dir=config_dir)
    model, target = composed.config.model, resolve(composed.config.megatron)
    values = target.surface.defaults() | compile_arguments(composed.config, target, lambda: composed.origins).values()
    return {
        "name": name,
        "family": _family(name),
        "parameters": total_parameters(values, model.vocab_size),
        "active_parameters": active_parameters(values, model.vocab_size),
        "num_layers": model.num_layers,
        "hidden_size": model.hidden_size,
        "num_attention_heads": model.num_attention_heads,
        "num_query_groups": model.num_query_groups or model.num_attention_heads,
        "num_experts": model.num_experts,
        "moe_router_topk": model.moe_router_topk,
        "max_position_embeddings": model.max_position_embeddings,
        "vocab_size": model.vocab_size,
        "tokenizer": model.tokenizer,
    }


def _family(name: str) -> str:
    """``llama31_8b`` → ``llama``."""
    letters = re.match(r"[^\W\d_]+", name)
    return letters.group() if letters else name
