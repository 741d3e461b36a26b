"""Training, validation and test data for Megatron's loop, from .bin/.idx files or made up."""

from __future__ import annotations

import argparse
import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from megatron.core import mpu
from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig, MockGPTDataset
from megatron.core.tokenizers.utils.build_tokenizer import build_tokenizer
from megatron.training import get_args, print_rank_0
from megatron.training.utils import get_blend_and_blend_per_split

from megawrap.megatron.embedded.ranks import reads_data


def datasets(num_samples: Sequence[int], vp_stage: int | None = None) -> tuple[Any, Any, Any]:
    """Training, validation and test data of ``num_samples`` sequences each, on the ranks that read data."""
    args = get_args()
    print_rank_0("> building train, validation, and test datasets for GPT ...")
    kind = MockGPTDataset if args.mock_data else GPTDataset
    is_built = functools.partial(_is_built_here, vp_stage)
    train, valid, test = BlendedMegatronDatasetBuilder(kind, num_samples, is_built, dataset_config(args)).build()
    print_rank_0("> finished creating GPT datasets ...")
    return train, valid, test


# Megatron's loop asks whether the provider runs on every rank, or on the first of each tensor-parallel group only.
datasets.is_distributed = True  # type: ignore[attr-defined]


def dataset_config(args: argparse.Namespace) -> GPTDatasetConfig:
    """The data configuration that Megatron's arguments describe."""
    blend, blend_per_split = get_blend_and_blend_per_split(args)
    per_dataset = args.per_dataset_sequences_path
    return GPTDatasetConfig(
        random_seed=args.seed,
        sequence_length=args.seq_length,
        blend=blend,
        blend_per_split=blend_per_split,
        split=args.split,
        multiple_validation_sets=args.multiple_validation_sets,
        full_validation=args.full_validation,
        num_dataset_builder_threads=args.num_dataset_builder_threads,
        path_to_cache=args.data_cache_path,
        mmap_bin_files=args.mmap_bin_files,
        tokenizer=build_tokenizer(args),
        reset_position_ids=args.reset_position_ids,
        reset_attention_mask=args.reset_attention_mask,
        eod_mask_loss=args.eod_mask_loss,
        create_attention_mask=args.create_attention_mask_in_dataloader,
        object_storage_cache_path=args.object_storage_cache_path,
        mid_level_dataset_surplus=args.mid_level_dataset_surplus,
        allow_ambiguous_pad_tokens=args.allow_ambiguous_pad_tokens,
        fast_cache_load=args.dataloader_fast_cache_load,
        sequences_per_dataset=json.loads(Path(per_dataset).read_text(encoding="utf-8")) if per_dataset else None,
        defer_npy_index_mmap=args.dataloader_defer_npy_index_mmap,
        context_parallel_size=args.context_parallel_size,
        data_parallel_size=args.data_parallel_size,
        sequence_parallel_size=args.tensor_model_parallel_size * args.sequence_parallel,
    )


def _is_built_here(vp_stage: int | None) -> bool:
    """One rank of each tensor-parallel group reads and sends to the others."""
    return mpu.get_tensor_model_parallel_rank() == 0 and reads_data(vp_stage)
