"""The number of parameters, exactly."""

from __future__ import annotations

import subprocess
import sys

import pytest

from megawrap.estimate.parameters import feed_forward_size, total_parameters


@pytest.mark.parametrize("model", ["llama2_7b", "llama2_70b", "llama3_8b", "llama3_70b"])
def test_published_counts(planned, model):
    """6,738,415,616 and so on, as published with the weights."""
    plan = planned(f"model={model}")
    assert plan.parameters == plan.composed.config.model.parameters


def test_feed_forward_size_is_megatrons_default():
    assert feed_forward_size({"hidden_size": 4096}) == 16384
    assert feed_forward_size({"hidden_size": 4096, "swiglu": True}) == 10880


def test_what_is_not_counted_is_unknown_and_not_wrong(planned):
    assert planned("model=llama2_7b", "megatron.args.multi_latent_attention=true").parameters is None
    assert total_parameters({}, 32000) is None


@pytest.mark.train
def test_counts_agree_with_megatron(planned):
    """Build the real GPTModel of megatron-core on the meta device, and count."""
    code = """
import torch
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.transformer.transformer_config import TransformerConfig
import os, socket
with socket.socket() as s:
    s.bind(("127.0.0.1", 0)); port = s.getsockname()[1]
os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
torch.distributed.init_process_group("gloo")
from megatron.core import parallel_state
parallel_state.initialize_model_parallel()
config = TransformerConfig(num_layers=3, hidden_size=64, num_attention_heads=8, num_query_groups=2, ffn_hidden_size=96,
    gated_linear_unit=True, add_bias_linear=False, add_qkv_bias=True, normalization="RMSNorm",
    use_cpu_initialization=True, init_model_with_meta_device=True, activation_func=torch.nn.functional.silu,
    num_moe_experts=EXPERTS,
    moe_ffn_hidden_size=48 if EXPERTS else None, bias_activation_fusion=False)
with torch.device("meta"):
    model = GPTModel(config, get_gpt_layer_local_spec(num_experts=EXPERTS, normalization="RMSNorm"), vocab_size=320,
        max_sequence_length=32, position_embedding_type="rope", share_embeddings_and_output_weights=False)
print("COUNT", sum(p.numel() for p in model.parameters()))
"""
    for experts in (None, 4):
        done = subprocess.run(
            [sys.executable, "-c", code.replace("EXPERTS", str(experts))],
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
        counted = int(done.stdout.split("COUNT")[1])
        words = ["model.num_layers=3", "model.hidden_size=64", "model.num_attention_heads=8", "model.swiglu=true",
                 "model.group_query_attention=true", "model.num_query_groups=2", "model.ffn_hidden_size=96",
                 "model.bias_linear=false", "model.add_qkv_bias=true", "model.normalization=RMSNorm",
                 "model.vocab_size=320", "model.untie_embeddings_and_output_weights=true",
                 "model.position_embedding_type=rope"]  # fmt: skip
        words += ["model.num_experts=4", "model.moe_ffn_hidden_size=48"] if experts else []
        assert planned(*words).parameters == counted, experts
