"""How a pipeline is cut into stages and virtual stages. Source: validate_args of Megatron-LM core_v0.19.0."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

COUNTED = ("account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split")
VIRTUAL = ("num_layers_per_virtual_pipeline_stage", "num_virtual_stages_per_pipeline_rank",
           "pipeline_model_parallel_layout")  # fmt: skip
"""Arguments that ask for virtual stages."""
NUMBERED = VIRTUAL[:2]
"""Those that say how many. Older releases took one virtual stage from them for an interleaved schedule."""


def counted_layers(values: Mapping[str, Any]) -> int:
    """Layers, and the embedding and the loss where they count as one."""
    return (values.get("num_layers") or 0) + sum(bool(values.get(name)) for name in COUNTED)


def virtual_size(values: Mapping[str, Any], pipeline: int) -> int:
    """Virtual stages on each of ``pipeline`` ranks; 1 when the schedule is not interleaved or the sizes do not
    divide."""
    each, count, layout = (values.get(name) for name in VIRTUAL)
    if count:
        return int(count)
    if layout:
        return max(1, len(written_out(layout)) // max(1, pipeline))
    if each:
        return max(1, counted_layers(values) // max(1, pipeline) // int(each))
    return 1


def written_out(layout: str) -> list[str]:
    """``"Et*3|t*4|t*4L"`` → the letters of each stage, written out. Repeats may also hold whole groups:
    ``(tt|)*3``."""
    plain = layout.replace(",", "")
    while (group := re.search(r"\(([^()]*)\)\*(\d+)", plain)) is not None:
        plain = plain[: group.start()] + group[1] * int(group[2]) + plain[group.end() :]
    plain = re.sub(r"([EtmL|])\*(\d+)", lambda one: one[1] * int(one[2]), plain)
    return plain.split("|")
