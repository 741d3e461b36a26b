"""Commands import and compile back to the same effective arguments and environment."""

from __future__ import annotations

import collections
from pathlib import Path
from typing import Any

import pytest
from importing_helpers import dialect, imported, shared, told, words_of

from megawrap.importing import Word, import_command, read_command
from megawrap.importing.arguments import read_arguments
from megawrap.importing.examples import example, names

# Shapes of real commands, of our own making.
COMMANDS = {
    "llama with everything said": (
        "core-0.16.1",
        "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --ffn-hidden-size 11008 "
        "--num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 --position-embedding-type rope "
        "--normalization RMSNorm --norm-epsilon 1e-5 --swiglu --disable-bias-linear --micro-batch-size 1 "
        "--untie-embeddings-and-output-weights --attention-dropout 0 --hidden-dropout 0.0 --global-batch-size 128 "
        "--train-iters 1000 --lr 3e-4 --min-lr 3e-5 --bf16 --mock-data --tensor-model-parallel-size 2 "
        "--sequence-parallel --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather",
    ),
    "nothing but what must be": ("core-0.16.1", "--num-layers 2 --hidden-size 64 --num-attention-heads 2"),
    "repeated flags: the last wins": (
        "core-0.16.1",
        "--num-layers 2 --num-layers 4 --eval-iters 10 --eval-iters -1 --bf16 --lr 1e-5 --lr 0.00002",
    ),
    "negative switches": (
        "core-0.16.1",
        "--num-layers 2 --no-load-optim --no-load-rng --no-save-optim --no-masked-softmax-fusion --no-rope-fusion "
        "--no-gradient-accumulation-fusion --no-bias-swiglu-fusion "
        "--disable-bias-linear --no-check-for-nan-in-loss-and-grad",
    ),
    "fp16 and a static scale": ("core-0.16.1", "--num-layers 2 --fp16 --loss-scale 65536 --initial-loss-scale 1024"),
    "two number formats at once": ("core-0.16.1", "--num-layers 2 --fp16 --bf16"),
    "mock data beside files": ("core-0.16.1", "--num-layers 2 --mock-data --data-path a b"),
    "a blend": ("core-0.16.1", "--num-layers 2 --data-path 0.7 a_text_document 0.3 b_text_document --split 1,0,0"),
    "a backend that no section names": ("core-0.16.1", "--num-layers 2 --attention-backend local"),
    "flash attention before there were backends": ("core-0.9.0", "--num-layers 2 --use-flash-attn --bf16"),
    "glued values": ("core-0.16.1", "--num-layers=2 --fp8-format=hybrid --fp8-recipe=delayed --lr=1e-4"),
    "variables that stay text": (
        "core-0.16.1",
        "--num-layers 2 --save ${CHECKPOINTS}/run --load $LOAD --data-path ${DATA}/x\\${y} --tensorboard-dir a$b",
    ),
    "experts and lists": (
        "core-0.16.1",
        "--num-layers 4 --num-experts 8 --moe-router-topk 2 --moe-layer-freq ([0]*1+[1]*3) "
        "--expert-model-parallel-size 4 --recompute-granularity selective "
        "--recompute-modules core_attn moe_act --moe-z-loss-coeff 1e-3",
    ),
    "words that look like other things": (
        "core-0.16.1",
        "--num-layers 2 --wandb-project null --wandb-exp-name 1e5 --save true --load 007 --tensorboard-dir off "
        "--data-cache-path 12:30:45",
    ),
    "a ROCm flag": (
        "rocm-2026-02",
        "--num-layers 2 --keep_fp8_weight_transpose_cache --no-async-tensor-model-parallel-allreduce",
    ),
    "launcher words and environment": (
        "core-0.16.1",
        "NCCL_DEBUG=INFO OMP_NUM_THREADS=4 python -m torch.distributed.run --nnodes=2 --nproc-per-node=4 "
        "pretrain_gpt.py --num-layers 2 --bf16",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_of_our_own(name):
    release, text = COMMANDS[name]
    one = imported(text, release)
    assert [row for row in one.unplaced if row.needed] == []
    assert told(one) == []


def test_every_example_run_of_amd():
    lost = {}
    for name in names():
        release, command = example(name)
        one = import_command(command, dialect(release))
        found = told(one)
        lost.update({name: found} if found else {})
    assert len(names()) == 37
    assert lost == {}


def test_what_the_page_says_was_given_to_amds_scripts():
    given = collections.Counter(name for one in names() for name in example(one)[1].environment)
    outside = {"MODEL_SIZE": 35, "PRETRAIN_CHECKPOINT_PATH": 6, "TP": 7, "TE_FP8": 6, "TE_FP8_RECIPE": 1, "FSDP": 1,
               "MEGATRON_FSDP": 1}  # fmt: skip
    assert {name: given[name] for name in outside} == outside
    page = (Path(__file__).parents[2] / "docs/import.md").read_text(encoding="utf-8").partition("## What was tried")[2]
    assert all(f"`{name}" in page for name in outside)


def test_the_bundled_examples_are_the_ones_that_were_captured():
    runs = shared("rocm_example_runs.json")["runs"]
    assert sorted(run["name"] for run in runs) == sorted(names())
    for run in runs:
        release, bundled = example(run["name"])
        words = [Word(word) for word in ["torchrun", *run["launcher"], run["program"], *run["arguments"]]]
        captured = read_command(words, f"example:{run['name']}", run["env"])
        one, other = (read_arguments(command.arguments, dialect(release).target) for command in (captured, bundled))
        assert one.values == other.values
        assert (captured.environment, captured.placed) == (bundled.environment, bundled.placed)
        assert captured.program == bundled.program


# Cases whose lists no parser of Megatron's own takes: flags that other programs add to it, and a variable where only
# certain words may stand.
NOT_MEGATRONS_OWN = {
    "mimo/mimo_vlm_pretrain_convergence_tp1_pp1_cp1_dp8_seq_packing": "--total-seq-length",
    "mimo/mimo_vlm_pretrain_convergence_tp1_pp1_cp2_dp8": "--total-seq-length",
    "multimodal-llava/multimodal_llava_mcore_te_tp4_sp_cp2": "--dataloader-seq-length",
    "nemotron/nemotron3_super_release_gb200": "--tokenizer-type",
    "nemotron/nemotron3_super_release_gb200_sm": "--tokenizer-type",
}


def test_arguments_as_megatrons_own_tests_write_them():
    words = words_of({"--num-layers": 12, "--bf16": True, "--data-path": "[0.7 a 0.3 b]", "--split": "99,1,0",
                      "--moe-layer-freq": "([0]*3+[1]*9)", "--recompute-modules": "[core_attn moe_act]",
                      "--save": "${CHECKPOINTS}"})  # fmt: skip
    assert words[:6] == ["--num-layers", "12", "--bf16", "--data-path", "0.7", "a"]
    one = import_command(read_command([Word(word) for word in words], "x", {"A": "1"}), dialect("main-2026-08"))
    assert [row.words for row in one.unplaced if row.needed] == []
    assert told(one) == []


def functional_tests() -> dict[str, dict[str, Any]]:
    return {row["case"]: row for row in shared("megatron_test_memory.json")["rows"]}


def test_the_number_of_functional_tests():
    assert len(functional_tests()) == 110


@pytest.mark.parametrize("part", range(5))
def test_every_functional_test_of_megatron(part):
    rows = dict(list(functional_tests().items())[part::5])
    lost = {}
    for case, row in rows.items():
        environment = {name: str(value) for name, value in row["env"].items()}
        command = read_command([Word(word) for word in words_of(row["args"])], case, environment)
        one = import_command(command, dialect("main-2026-08"))
        found = one.check()
        lost.update({case: found} if found else {})
    assert set(lost) == set(NOT_MEGATRONS_OWN) & set(rows)
    for case, found in lost.items():
        # Nothing else is lost in them: each difference is a word that could not be placed, and says so.
        assert all(one.is_lost for one in found), case
        assert any(one.argument.startswith(NOT_MEGATRONS_OWN[case]) for one in found)
