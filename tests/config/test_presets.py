"""The models of conf/model against what their makers published. published.json holds that by the names of the
config.json that comes with the weights, written down apart from the presets; AMD's example scripts differ in places."""

from __future__ import annotations

import functools
import json
import math
from pathlib import Path

import pytest

from megawrap.config.compose import choices_of, compose
from megawrap.config.models import with_model
from megawrap.errors import errors
from megawrap.estimate.pattern import expert_layers

PUBLISHED = json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))
# Our keys of what every config.json says.
SAME = {
    "num_layers": "num_hidden_layers",
    "hidden_size": "hidden_size",
    "ffn_hidden_size": "intermediate_size",
    "num_attention_heads": "num_attention_heads",
    "rotary_base": "rope_theta",
    "norm_epsilon": "rms_norm_eps",
    "vocab_size": "vocab_size",
    "num_experts": "num_experts",
    "moe_router_topk": "num_experts_per_tok",
    "q_lora_rank": "q_lora_rank",
    "kv_lora_rank": "kv_lora_rank",
    "qk_head_dim": "qk_nope_head_dim",
    "qk_pos_emb_head_dim": "qk_rope_head_dim",
    "v_head_dim": "v_head_dim",
    "mscale": "mscale",
    "mscale_all_dim": "mscale_all_dim",
    "add_qkv_bias": "qkv_bias",
}
# Tokens of the tokenizer -> rows of the published tables.
PADDED = {
    "qwen25_0_5b": (151_665, 151_936),
    "qwen25_72b": (151_665, 152_064),
    "qwen3_8b": (151_669, 151_936),
    "deepseek_v2": (100_002, 102_400),
    "deepseek_v3": (128_815, 129_280),
}
GPT3 = {  # Brown et al. 2020, table 2.1: layers, width, heads, millions of parameters
    "gpt3_125m": (12, 768, 12, 125),
    "gpt3_350m": (24, 1024, 16, 350),
    "gpt3_760m": (24, 1536, 16, 760),
    "gpt3_1_3b": (24, 2048, 16, 1300),
    "gpt3_2_7b": (32, 2560, 32, 2700),
    "gpt3_6_7b": (32, 4096, 32, 6700),
    "gpt3_13b": (40, 5120, 40, 13000),
    "gpt3_175b": (96, 12288, 96, 175000),
}
TINY = {"llama_tiny", "mixtral_tiny", "deepseek_tiny"}


@functools.cache
def model(name):
    return compose([f"model={name}", "cluster=cpu"]).config.model


def test_every_preset_is_compared():
    assert set(choices_of("model")) == set(PUBLISHED) | set(GPT3) | TINY


@pytest.mark.parametrize("name", PUBLISHED)
def test_dimensions_are_the_published_ones(name):
    ours, theirs = model(name), PUBLISHED[name]
    assert ours.name == name
    assert {key: getattr(ours, key) for key in SAME} == {key: theirs.get(other) for key, other in SAME.items()}
    assert ours.untie_embeddings_and_output_weights is not theirs["tie_word_embeddings"]
    assert (ours.normalization, ours.swiglu, ours.bias_linear) == ("RMSNorm", True, False)
    assert (ours.attention_dropout, ours.hidden_dropout) == (0.0, 0.0)
    if ours.multi_latent_attention:
        _latent(ours, theirs)
    else:
        _grouped(ours, theirs)
    if ours.num_experts:
        _experts(ours, theirs)


def _grouped(ours, theirs):
    groups = ours.num_query_groups if ours.group_query_attention else ours.num_attention_heads
    assert groups == theirs["num_key_value_heads"]
    assert (ours.kv_channels or ours.hidden_size // ours.num_attention_heads) == theirs["head_dim"]
    assert ours.max_position_embeddings == theirs["max_position_embeddings"]
    assert bool(ours.qk_layernorm) == theirs.get("qk_norm", False)
    # Llama 3.1's way; Megatron's own factor is 8.
    factor = (ours.rope_scaling_factor or 8.0) if ours.use_rope_scaling else None
    assert factor == theirs.get("rope_scaling_factor")


def _latent(ours, theirs):
    """The published DeepSeek models are stretched; the presets are as they were trained before that."""
    assert ours.qk_layernorm
    assert not ours.use_rope_scaling
    assert ours.rotary_scaling_factor == theirs["rope_scaling_factor"]
    assert ours.max_position_embeddings == theirs["original_max_position_embeddings"]


def _experts(ours, theirs):
    assert (ours.moe_ffn_hidden_size or ours.ffn_hidden_size) == theirs["moe_intermediate_size"]
    assert ours.moe_aux_loss_coeff == theirs.get("router_aux_loss_coef", theirs.get("aux_loss_alpha"))
    shared = theirs.get("n_shared_experts", 0) * theirs["moe_intermediate_size"]
    assert (ours.moe_shared_expert_intermediate_size or 0) == shared
    dense = theirs.get("first_k_dense_replace", 0)
    assert expert_layers(ours.moe_layer_freq, ours.num_layers).index(True) == dense
    assert (ours.moe_router_num_groups or 1, ours.moe_router_group_topk or 1) == (
        theirs.get("n_group", 1),
        theirs.get("topk_group", 1),
    )
    assert (ours.moe_router_topk_scaling_factor or 1.0) == theirs.get("routed_scaling_factor", 1.0)
    score = theirs.get("scoring_func", "softmax")
    assert (ours.moe_router_score_function or "softmax") == score
    # Megatron makes the chosen weights add up to 1 unless it takes the softmax before it chooses.
    assert bool(ours.moe_router_pre_softmax) is not theirs["norm_topk_prob"]
    assert bool(ours.moe_router_enable_expert_bias) == theirs.get("e_score_correction_bias", False)


@pytest.mark.parametrize(("name", "tokens", "rows"), [(name, *pair) for name, pair in PADDED.items()])
def test_tables_are_padded_to_the_published_size(name, tokens, rows):
    """At every usual TP, by Megatron's rule: to a multiple of make_vocab_size_divisible_by x TP."""
    ours = model(name)
    assert ours.vocab_size == rows
    for tensor in (1, 2, 4, 8):
        step = ours.make_vocab_size_divisible_by * tensor
        assert math.ceil(tokens / step) * step == rows, tensor


@pytest.mark.parametrize(("name", "row"), GPT3.items())
def test_gpt3(planned, name, row):
    """The paper's numbers of parameters are rounded, and hold within 2 % for these dimensions."""
    layers, width, heads, millions = row
    plan = planned(f"model={name}", "megatron=core-0.19.0")
    ours = plan.composed.config.model
    assert (ours.num_layers, ours.hidden_size, ours.num_attention_heads) == (layers, width, heads)
    assert ours.ffn_hidden_size == 4 * width
    assert plan.composed.config.train.seq_length == ours.max_position_embeddings == 2048
    counted = 12 * layers * width**2 + 13 * layers * width + (50257 + 2048 + 2) * width
    assert plan.parameters == ours.parameters == counted
    assert counted == pytest.approx(millions * 1e6, rel=0.021)


@pytest.mark.parametrize("name", choices_of("model"))
def test_its_tokenizer_is_a_group(name):
    assert model(name).tokenizer in choices_of("tokenizer")


@pytest.mark.parametrize("name", choices_of("model"))
def test_a_file_read_alone_says_the_same(name):
    assert with_model(name).model == model(name)


BOTH = ("megatron.args.account_for_embedding_in_pipeline_split=true",
        "megatron.args.account_for_loss_in_pipeline_split=true")  # fmt: skip
LAST = "megatron.args.decoder_last_pipeline_num_layers"
ADVICE = [
    ("llama31_405b", "parallel=tp8pp4", *BOTH),
    ("llama31_405b", "parallel=tp8pp8", *BOTH),
    ("llama31_405b", "parallel=tp8", "parallel.pp=16", *BOTH),
    ("qwen3_235b_a22b", "parallel=tp4pp8", *BOTH),
    ("deepseek_v2_lite", "parallel=pp4", BOTH[0]),
    ("deepseek_v2", "parallel=pp8", f"{LAST}=4"),
    ("deepseek_v3", "parallel=pp4", f"{LAST}=13"),
    ("deepseek_v3", "parallel=pp8", f"{LAST}=5"),
    ("deepseek_v3", "parallel.pp=16", f"{LAST}=1"),
    ("deepseek_v3", "model.mtp_num_layers=1", "model.mtp_loss_scaling_factor=0.3"),
    ("mistral_7b", "model.window_size='(4095,0)'", "train.seq_length=8192"),
    ("qwen3_30b_a3b", "model.moe_router_load_balancing_type=global_aux_loss"),
]


@pytest.mark.parametrize("words", ADVICE, ids=[" ".join(words) for words in ADVICE])
def test_what_the_files_advise_is_legal(planned, words):
    name, *rest = words
    nodes = ["cluster=mi355x", "cluster.nodes=16", "train.global_batch_size=256"]
    assert errors(planned(f"model={name}", *nodes, *rest, "megatron=core-0.19.0").findings) == []


def test_without_the_advice_it_is_not(planned):
    plan = planned("model=llama31_405b", "parallel=tp8pp8", "cluster=mi355x", "cluster.nodes=8", "megatron=core-0.19.0")
    assert [finding.id for finding in errors(plan.findings)] == ["MW105"]
