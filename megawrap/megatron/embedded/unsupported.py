"""What this entry does not do. Better refused than trained another way than asked."""

from __future__ import annotations

import argparse
import sys

# Argument → what it asks for.
_UNSUPPORTED = {
    "sft": "supervised fine-tuning",
    "fim_data": "fill-in-the-middle data",
    "logits_load_dir": "distillation from stored logits",
    "hybrid_context_parallel": "hybrid context parallelism",
    "dataloader_inter_document_masking": "masking between documents in the data loader",
    "perform_rl_step": "reinforcement learning",
    "overlap_moe_expert_parallel_comm": "overlap of expert communication by schedule plans",
}


def refuse_unsupported(args: argparse.Namespace) -> None:
    """Exit with a message when ``args`` ask for what only Megatron-LM's own pretrain_gpt.py does."""
    asked = [what for name, what in _UNSUPPORTED.items() if getattr(args, name, None)]
    if asked:
        sys.exit(
            f"the embedded entry does not do {' and '.join(asked)}; Megatron-LM's own pretrain_gpt.py does: "
            "megatron=checkout megatron.path=/path/to/Megatron-LM"
        )
