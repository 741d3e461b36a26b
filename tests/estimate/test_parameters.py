"""The number of parameters, exactly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from megawrap.estimate.parameters import active_parameters, feed_forward_size, total_parameters

# As published with the weights (the total of their safetensors files), not as the presets say. Two families differ from
# that total: Llama 2's files also hold 64 rotary frequencies a layer, and those of Qwen 3 0.6B and 1.7B (751,632,384
# and 2,031,739,904) the output layer apart from the embedding that it is tied to.
PUBLISHED = {
    "llama2_7b": 6_738_415_616,
    "llama2_13b": 13_015_864_320,
    "llama2_70b": 68_976_648_192,
    "llama3_8b": 8_030_261_248,
    "llama3_70b": 70_553_706_496,
    "llama31_8b": 8_030_261_248,
    "llama31_70b": 70_553_706_496,
    "llama31_405b": 405_853_388_800,
    "llama32_1b": 1_235_814_400,
    "llama32_3b": 3_212_749_824,
    "llama33_70b": 70_553_706_496,
    "mistral_7b": 7_241_732_096,
    "mixtral_8x7b": 46_702_792_704,
    "mixtral_8x22b": 140_620_634_112,
    "qwen25_0_5b": 494_032_768,
    "qwen25_1_5b": 1_543_714_304,
    "qwen25_3b": 3_085_938_688,
    "qwen25_7b": 7_615_616_512,
    "qwen25_14b": 14_770_033_664,
    "qwen25_32b": 32_763_876_352,
    "qwen25_72b": 72_706_203_648,
    "qwen3_0_6b": 596_049_920,
    "qwen3_1_7b": 1_720_574_976,
    "qwen3_4b": 4_022_468_096,
    "qwen3_8b": 8_190_735_360,
    "qwen3_14b": 14_768_307_200,
    "qwen3_32b": 32_762_123_264,
    "qwen3_30b_a3b": 30_532_122_624,
    "qwen3_235b_a22b": 235_093_634_560,
    "deepseek_v2_lite": 15_706_484_224,
    "deepseek_v2": 235_741_434_880,
    # 671,026,419,200 with the 58 x 256 biases of the routers, which are no parameters of Megatron's.
    "deepseek_v3": 671_026_404_352,
}
# Billions that a token meets, as the papers say; DeepSeek-V2's leave the embedding out.
ACTIVE = {
    "mixtral_8x7b": 12.9,
    "mixtral_8x22b": 39,
    "qwen3_30b_a3b": 3.3,
    "qwen3_235b_a22b": 22,
    "deepseek_v3": 37,
}
RELEASE = "megatron=core-0.19.0"
SMALL = (
    "model.num_layers=4",
    "model.hidden_size=64",
    "model.num_attention_heads=8",
    "model.max_position_embeddings=32",
    "model.vocab_size=320",
    "train.seq_length=32",
    "train.global_batch_size=8",
)
LLAMA = (
    "model.ffn_hidden_size=96",
    "model.swiglu=true",
    "model.bias_linear=false",
    "model.normalization=RMSNorm",
    "model.position_embedding_type=rope",
    "model.untie_embeddings_and_output_weights=true",
)
GROUPS = ("model.group_query_attention=true", "model.num_query_groups=2")
EXPERTS = ("model.num_experts=4", "model.moe_router_topk=2", "model.moe_ffn_hidden_size=48")
SHARED = ("model.moe_shared_expert_intermediate_size=40",)
LATENT = ("model.multi_latent_attention=true", "model.kv_lora_rank=24", "model.qk_head_dim=8",
          "model.qk_pos_emb_head_dim=4", "model.v_head_dim=8", "model.rope_fusion=false")  # fmt: skip
COMPRESSED = ("model.q_lora_rank=40", "model.qk_layernorm=true")
# What is put together, by name.
BUILT = {
    "GPT-3": SMALL,
    "dense": SMALL + LLAMA,
    "groups, wide heads, query and key norms, tied": SMALL + LLAMA[:-1] + GROUPS
    + ("model.kv_channels=16", "model.qk_layernorm=true"),
    "bias of queries, keys and values alone": SMALL + LLAMA + GROUPS + ("model.add_qkv_bias=true",),
    "gated attention": SMALL + LLAMA + GROUPS + ("megatron.args.attention_output_gate=true",),
    "sinks": SMALL + LLAMA + ("megatron.args.softmax_type=learnable",),
    "quick GeGLU": SMALL + LLAMA[:1] + LLAMA[2:] + ("megatron.args.quick_geglu=true",),
    "experts": SMALL + LLAMA + GROUPS + EXPERTS,
    "experts with biases": SMALL + EXPERTS,
    "experts in every other layer, shared ones, gated": SMALL + LLAMA + EXPERTS + SHARED
    + ("model.moe_layer_freq=2", "megatron.args.moe_shared_expert_gate=true"),
    "experts after dense layers": SMALL + LLAMA + EXPERTS + ("model.moe_layer_freq='([0]*3+[1]*1)'",),
    "latent attention": SMALL + LLAMA + LATENT,
    "latent attention, compressed queries": SMALL + LLAMA + LATENT + COMPRESSED,
    "latent attention with LayerNorm and biases": SMALL + LATENT + COMPRESSED,
    "two tokens ahead": SMALL + LLAMA + ("model.mtp_num_layers=2",),
    "two tokens ahead by one layer": SMALL + LLAMA
    + ("model.mtp_num_layers=2", "megatron.args.mtp_use_repeated_layer=true"),
    "everything of DeepSeek-V3": SMALL + LLAMA + LATENT + COMPRESSED + EXPERTS + SHARED
    + ("model.moe_layer_freq='([0]*1+[1]*3)'", "model.mtp_num_layers=1"),
    **{f"model={name}": (f"model={name}",) for name in ("llama_tiny", "mixtral_tiny", "deepseek_tiny")},
    **{f"model={name}": (f"model={name}", "train.global_batch_size=8")
       for name in ("gpt3_125m", "llama32_1b", "qwen25_0_5b", "qwen3_0_6b")},
    # Their grouped GEMM needs Transformer Engine. Of DeepSeek-V2's 9440 experts a tenth will do.
    **{" ".join(words): (*words, "train.global_batch_size=8", "model.moe_grouped_gemm=false")
       for words in (("model=mixtral_8x7b",),
                     ("model=deepseek_v2", "model.num_layers=7", "model.moe_layer_freq='([0]*1+[1]*6)'"))},
}  # fmt: skip


@pytest.mark.parametrize(("model", "parameters"), PUBLISHED.items())
def test_published_counts(planned, model, parameters):
    """6,738,415,616 and so on, as published with the weights."""
    plan = planned(f"model={model}", RELEASE)
    assert plan.parameters == parameters == plan.composed.config.model.parameters


@pytest.mark.parametrize("model", ["llama_tiny", "mixtral_tiny", "deepseek_tiny"])
def test_our_own_say_their_number(planned, model):
    plan = planned(f"model={model}", RELEASE)
    assert plan.parameters == plan.composed.config.model.parameters


@pytest.mark.parametrize(("model", "billions"), ACTIVE.items())
def test_active_counts(planned, model, billions):
    plan = planned(f"model={model}", RELEASE)
    active = active_parameters(_values(plan), plan.composed.config.model.vocab_size)
    assert active == pytest.approx(billions * 1e9, rel=0.02)


def test_active_counts_exactly(planned):
    """Mixtral 8x7B: six of eight experts of three 4096 x 14336 matrices in 32 layers are left out. Of DeepSeek's, those
    in the layer that predicts further ahead as well."""
    mixtral = planned("model=mixtral_8x7b", RELEASE)
    active = active_parameters(_values(mixtral), 32000)
    assert active == 46_702_792_704 - 6 * 3 * 4096 * 14336 * 32 == 12_879_925_248
    values = _values(planned("model=deepseek_v3", "model.mtp_num_layers=1", RELEASE))
    total = total_parameters(values, 129280)
    assert total is not None
    assert active_parameters(values, 129280) == total - (256 - 8) * 3 * 7168 * 2048 * 59


def test_all_parameters_of_a_dense_model_are_active(planned):
    values = _values(planned("model=llama2_7b", RELEASE))
    assert active_parameters(values, 32000) == total_parameters(values, 32000)


def test_prediction_further_ahead_is_a_layer_behind_a_projection(planned):
    ahead = planned("model=deepseek_v3", "model.mtp_num_layers=1", RELEASE).parameters
    deeper = planned("model=deepseek_v3", "model.num_layers=62", "model.moe_layer_freq='([0]*3+[1]*59)'", RELEASE)
    assert ahead - PUBLISHED["deepseek_v3"] == 11_610_067_968
    assert ahead - deeper.parameters == 2 * 7168 * 7168 + 3 * 7168


def test_feed_forward_size_is_megatrons_default():
    assert feed_forward_size({"hidden_size": 4096}) == 16384
    assert feed_forward_size({"hidden_size": 4096, "swiglu": True}) == 10880


@pytest.mark.parametrize(
    "word",
    [
        "megatron.args.hybrid_layer_pattern='M*M*'",
        "megatron.args.experimental_attention_variant=gated_delta_net",
        "megatron.args.moe_latent_size=32",
        "model.moe_layer_freq='([0]*3)'",
        "model.moe_layer_freq='__import__(1)'",
    ],
)
def test_what_is_not_counted_is_unknown_and_not_wrong(planned, word):
    plan = planned("model=mixtral_tiny", word, RELEASE)
    assert plan.parameters is None
    assert active_parameters(_values(plan), 4096) is None
    assert total_parameters({}, 32000) is None


def test_learned_positions_without_their_number_are_unknown(planned):
    """Megatron's default is to learn them."""
    words = ("model.num_layers=2", "model.hidden_size=64", "model.num_attention_heads=4", "model.vocab_size=100")
    assert planned(*words, RELEASE).parameters is None
    plan = planned(*words, "model.max_position_embeddings=8", RELEASE)
    assert plan.parameters == 2 * (12 * 64**2 + 13 * 64) + (100 + 8 + 2) * 64


@pytest.mark.train
def test_counts_agree_with_megatron(planned):
    """The GPTModel that the installed Megatron builds from the same arguments, on the meta device."""
    plans = [planned(*words, "cluster=cpu", "checkpoint.save=null") for words in BUILT.values()]
    asked = [{"argv": plan.compiled.argv(), "vocab_size": plan.composed.config.model.vocab_size} for plan in plans]
    done = subprocess.run(
        [sys.executable, "-m", "megawrap.megatron.cpu", str(Path(__file__).with_name("real_model.py"))],
        input="".join(json.dumps(one) + "\n" for one in asked),
        env=dict(os.environ) | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    built = dict(zip(BUILT, map(int, done.stdout.split()), strict=False))
    assert built == dict(zip(BUILT, (plan.parameters for plan in plans), strict=True)), done.stderr[-2000:]


def _values(plan):
    return plan.target.surface.defaults() | plan.compiled.values()
