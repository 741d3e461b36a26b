"""Which pipeline ranks hold what."""

from __future__ import annotations

from collections.abc import Sequence

from megatron.core.transformer.multi_token_prediction import get_mtp_ranks, mtp_on_this_rank
from megatron.training import get_args
from megatron.training.arguments import core_transformer_config_from_args
from megatron.training.utils import is_first_or_last_pipeline_stage


def embedding_ranks(pipeline: Sequence[int]) -> list[int]:
    """Ranks of a pipeline group that hold the token embedding: the first; the last too when the output layer shares its
    weights; those of multi-token prediction."""
    if len(pipeline) == 1:
        return [pipeline[0]]
    args = get_args()
    shared = set() if args.untie_embeddings_and_output_weights else {pipeline[-1]}
    return sorted({pipeline[0], *shared, *get_mtp_ranks(pipeline, core_transformer_config_from_args(args))})


def predicts_ahead(vp_stage: int | None) -> bool:
    """Whether layers of multi-token prediction are on this rank."""
    config = core_transformer_config_from_args(get_args())
    return bool(
        mtp_on_this_rank(
            layout=config.pipeline_model_parallel_layout,
            mtp_num_layers=config.mtp_num_layers,
            ignore_virtual=False,
            vp_stage=vp_stage,
        )
    )


def reads_data(vp_stage: int | None) -> bool:
    """Whether this rank's pipeline stage needs tokens: the first, the last, and those of multi-token prediction."""
    return bool(is_first_or_last_pipeline_stage(vp_stage)) or predicts_ahead(vp_stage)
