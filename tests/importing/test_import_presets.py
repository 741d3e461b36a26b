"""Which presets are taken, and when none is."""

from __future__ import annotations

import pytest
from importing_helpers import dialect, imported

from megawrap.importing import import_command
from megawrap.importing.examples import example, names

LLAMA2_7B = (
    "--num-layers 32 --hidden-size 4096 --ffn-hidden-size 11008 --num-attention-heads 32 "
    "--max-position-embeddings 4096 --position-embedding-type rope --normalization RMSNorm --swiglu "
    "--disable-bias-linear --attention-dropout 0 --hidden-dropout 0 --untie-embeddings-and-output-weights"
)


def test_a_model_with_two_differences():
    one = imported(f"{LLAMA2_7B} --num-layers 16 --rotary-base 20000")
    assert one.presets["model"] == "llama2_7b"
    assert one.differences_of("model") == 2
    assert {key: value for key, value in one.settled.keys.items() if key.startswith("model.")} == {
        "model.num_layers": 16,
        "model.rotary_base": 20000,
    }


@pytest.mark.parametrize(
    "words",
    [
        "--num-layers 32 --hidden-size 4096 --num-attention-heads 32",  # GPT-2's kind of layer
        LLAMA2_7B.replace("4096 --ffn", "5120 --ffn"),
        LLAMA2_7B.replace("11008", "14000"),
    ],
)
def test_no_model_that_is_another(words):
    assert "model" not in imported(words).presets


def test_a_mixture_of_experts_is_no_dense_model():
    assert imported(f"{LLAMA2_7B} --num-experts 8").presets.get("model") != "llama2_7b"


@pytest.mark.parametrize(
    ("words", "presets"),
    [
        ("--tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 --sequence-parallel", {"parallel": "tp4pp2"}),
        ("--use-torch-fsdp2", {"parallel": "fsdp2"}),
        ("--bf16", {}),
        ("--fp16", {"precision": "fp16"}),
        ("--bf16 --fp8-format hybrid --fp8-recipe delayed --fp8-amax-history-len 1024 --fp8-amax-compute-algo max", {
            "precision": "fp8_delayed"}),
        ("--recompute-granularity full --recompute-method uniform --recompute-num-layers 1", {"recompute": "full"}),
        ("--attention-backend flash", {"attention": "flash"}),
        ("--optimizer sgd", {"optimizer": "sgd"}),
        ("--lr-decay-style WSD --lr-wsd-decay-style minus_sqrt --lr-wsd-decay-iters 9", {"schedule": "wsd"}),
        ("--data-path x", {"data": "prefix"}),
        ("--data-path 1 x 2 y", {"data": "blend"}),
        ("--tokenizer-type GPT2BPETokenizer", {"tokenizer": "gpt2"}),
        ("--tokenizer-type HuggingFaceTokenizer --tokenizer-model /my/own", {"tokenizer": "huggingface"}),
    ],
)  # fmt: skip
def test_groups(words, presets):
    dtype = "" if "--fp16" in words else "--bf16"
    # Megatron's own decay is linear; ours is cosine.
    assert dict(imported(f"--num-layers 2 --lr-decay-style cosine {dtype} {words}").presets) == presets


def test_megatrons_own_decay_is_linear():
    assert imported("--num-layers 2 --bf16").presets == {"schedule": "linear"}


def test_amds_llama_runs_are_recognised():
    wanted = {"llama2-7": "llama2_7b", "llama2-70": "llama2_70b", "llama3-8": "llama3_8b", "llama3-70": "llama3_70b"}
    for name in names():
        tree, _, size = name.partition("-")
        if size in wanted:
            release, command = example(name)
            assert import_command(command, dialect(release)).presets["model"] == wanted[size], tree
