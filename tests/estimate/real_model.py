"""Run by ``python -m megawrap.megatron.cpu``: for each JSON line on stdin, {"argv": words, "vocab_size": rows}, the
number of parameters of the GPTModel that the installed Megatron builds from these arguments, a line each."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import torch


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Megatron prints on stdout
    os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
    torch.distributed.init_process_group("fake", rank=0, world_size=1, store=_store())
    from megatron.core import parallel_state
    from megatron.core.transformer.dot_product_attention import DotProductAttention

    parallel_state.initialize_model_parallel()
    DotProductAttention.__init__ = _without_widths(DotProductAttention.__init__)
    for line in sys.stdin:
        answers.write(f"{_count(**json.loads(line))}\n")
        answers.flush()


def _count(argv: list[str], vocab_size: int) -> int:
    from megatron.core.process_groups_config import ProcessGroupCollection
    from megatron.training.argument_utils import gpt_config_from_args
    from megatron.training.arguments import parse_args, validate_args
    from megatron.training.models.gpt import GPTModelBuilder

    sys.argv = ["train", *argv]
    args = parse_args()
    validate_args(args)
    args.padded_vocab_size = vocab_size
    args.use_cpu_initialization = args.init_model_with_meta_device = True
    args.perform_initialization = False
    builder = GPTModelBuilder(gpt_config_from_args(args))
    with torch.device("meta"):
        model = builder.build_model(ProcessGroupCollection.use_mpu_process_groups())
    return sum(parameter.numel() for parameter in model.parameters())


def _without_widths(build: Any) -> Any:
    """Latent attention tells its widths, which only Transformer Engine's attention takes."""

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        build(
            self, *args, **{name: value for name, value in kwargs.items() if name not in ("k_channels", "v_channels")}
        )

    return init


def _store() -> Any:
    from torch.testing._internal.distributed.fake_pg import FakeStore

    return FakeStore()


if __name__ == "__main__":
    main()
