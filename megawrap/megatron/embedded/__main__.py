"""Train a GPT with the installed megatron-core's own training loop; the arguments are those of pretrain_gpt.py."""

from __future__ import annotations

import importlib.metadata
import re
import sys
import time

# Nothing heavy is imported up here: Megatron's checkpoint writer spawns a process, which imports this file again.

# The first whose pretrain() builds the model itself, from a configuration: earlier wheels lack the model builder.
FIRST_SUPPORTED = (0, 19)


def main() -> None:
    """Parse ``sys.argv`` as Megatron does and train to the end; torchrun is told of an exception that ends it."""
    started = time.time()
    _refuse_old_release()
    from torch.distributed.elastic.multiprocessing.errors import record

    record(_train)(started)


def _train(started: float) -> None:
    from megatron.core.datasets import utils
    from megatron.core.enums import ModelType
    from megatron.training import inprocess_restart, pretrain, set_startup_timestamps
    from megatron.training.argument_utils import gpt_config_from_args, pretrain_cfg_container_from_args
    from megatron.training.arguments import parse_and_validate_args

    from megawrap.megatron.embedded.data import datasets
    from megawrap.megatron.embedded.ranks import embedding_ranks
    from megawrap.megatron.embedded.step import forward_step
    from megawrap.megatron.embedded.unsupported import refuse_unsupported
    from megawrap.megatron.helpers import build_for_this_python

    build_for_this_python(utils)
    set_startup_timestamps(program_start=started, main_entry=time.time())
    train, store = inprocess_restart.maybe_wrap_for_inprocess_restart(pretrain)
    args = parse_and_validate_args()
    refuse_unsupported(args)
    container = pretrain_cfg_container_from_args(args, gpt_config_from_args(args))
    kind = ModelType.encoder_or_decoder
    train(container, datasets, kind, forward_step, store=store, get_embedding_ranks=embedding_ranks)


def _refuse_old_release() -> None:
    version = importlib.metadata.version("megatron-core")
    if tuple(int(number) for number in re.findall(r"\d+", version)[:2]) < FIRST_SUPPORTED:
        sys.exit(
            f"megatron-core {version}: its wheel cannot train by itself; 0.19 is the first that can. "
            "With a source tree of any release: megatron=checkout megatron.path=/path/to/Megatron-LM"
        )


if __name__ == "__main__":
    main()
