"""Compiling: the words say exactly what the configuration says, on every release, and read back to it."""

from __future__ import annotations

import collections
import json
import subprocess
import sys

import pytest

from megawrap.config.compose import compose
from megawrap.errors import ConfigError
from megawrap.megatron.compile import compile_arguments
from megawrap.megatron.surface import releases, resolve
from megawrap.megatron.surface.parser import parse

MODELS = ("llama_tiny", "llama2_7b", "llama3_70b")


def compiled(*words: str):
    found = compose(words)
    target = resolve(found.config.megatron)
    return compile_arguments(found.config, target, lambda: found.origins), target


def findings(*words: str):
    with pytest.raises(ConfigError) as caught:
        compiled(*words)
    return caught.value.findings


@pytest.mark.parametrize("release", [one.id for one in releases()])
@pytest.mark.parametrize("everything", [False, True])
def test_reads_back_to_the_same_values(release, everything):
    """The target's parser gives back what the configuration holds, whether defaults are said or left out."""
    for model in MODELS:
        result, target = compiled(f"model={model}", "parallel=tp2pp2", f"megatron={release}", "cluster=cpu")
        parsed = parse(target.surface, result.argv(everything=everything))
        assert {dest: parsed[dest] for dest in result.values()} == result.values()


def test_defaults_are_left_out_unless_asked_for():
    result, _ = compiled("model=llama_tiny", "parallel.pp=1")
    assert "--pipeline-model-parallel-size" not in result.argv()
    assert "--pipeline-model-parallel-size" in result.argv(everything=True)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("megatron.args.masked_softmax_fusion=false", ["--no-masked-softmax-fusion"]),
        ("megatron.args.no_masked_softmax_fusion=true", ["--no-masked-softmax-fusion"]),
        ("megatron.args.masked_softmax_fusion=true", []),
        ("fusion.persist_layer_norm=false", ["--no-persist-layer-norm"]),
        ("model.bias_linear=true", []),
        ("model.bias_linear=false", ["--disable-bias-linear"]),
        ("megatron.args.moe_layer_freq='[0]*3+[1]*58'", ["--moe-layer-freq", "[0]*3+[1]*58"]),
        ("megatron.args.eval_iters=-1", ["--eval-iters", "-1"]),
        ("megatron.args.wandb_exp_name=-x", ["--wandb-exp-name=-x"]),
        ("recompute.modules=[core_attn,mlp]", ["--recompute-modules", "core_attn", "mlp"]),
        ("megatron.args.inference_wandb_logging=true", ["--inference-wandb-logging"]),
        ("optimizer.lr=1e-3", ["--lr", "0.001"]),
        ("attention.backend=flash", ["--attention-backend", "flash"]),
        ("megatron.args.no_load_optim=true", ["--no-load-optim"]),
        ("megatron.args.lr_decay_iters=null", []),
    ],
)
def test_words_for_a_value(setting, words):
    quiet = ("optimizer.lr=null", "model.bias_linear=null", "checkpoint.save=null")
    before, _ = compiled(*quiet)
    after, _ = compiled(*quiet, setting)
    assert _added(before.argv(), after.argv()) == words


def _added(before: list[str], after: list[str]) -> list[str]:
    """The words of ``after`` that ``before`` lacks, in order."""
    left = collections.Counter(before)
    added = []
    for word in after:
        added += [] if left[word] else [word]
        left[word] -= 1
    return added


def test_old_releases_have_another_word_for_flash_attention():
    result, _ = compiled("model=llama2_7b", "attention=flash", "megatron=core-0.9.0")
    assert "--use-flash-attn" in result.argv()
    assert "--attention-backend" not in result.argv()


@pytest.mark.parametrize(
    ("words", "id", "message", "nearest"),
    [
        (["megatron=core-0.9.0", "precision=fp8_tensorwise"], "MW010",
         "precision.fp8_recipe: core-0.9.0 has no argument --fp8-recipe; --fp8-recipe exists since core-0.12.3", ()),
        (["megatron=core-0.19.0", "megatron.args.moe_z_los_coeff=1"], "MW010",
         "megatron.args.moe_z_los_coeff: core-0.19.0 has no argument --moe-z-los-coeff", ("--moe-z-loss-coeff",)),
        (["megatron.args.seq_length=[1,2]"], "MW014",
         "megatron.args.seq_length = ListConfig", ()),
        (["megatron.args.seed=x"], "MW014", "megatron.args.seed = 'x': --seed takes a value of type int", ()),
        (["megatron.args.save_retain_interval=1.5"], "MW014",
         "megatron.args.save_retain_interval = 1.5: --save-retain-interval takes a whole number", ("1",)),
        (["optimizer.name=adamw"], "MW014", "optimizer.name = 'adamw': --optimizer takes one of: adam, ", ("adam",)),
        (["megatron.args.bf16=yes"], "MW014", "megatron.args.bf16 = 'yes': it is a switch: true or false", ("true",)),
        (["megatron.args.lr=1"], "MW016",
         "optimizer.lr = 0.0003 and megatron.args.lr = 1.0 set the same argument, lr: set one of them",
         ("optimizer.lr",)),
        (["data=prefix"], "MW015", "data.prefix is not set, and data.source=prefix needs it", ()),
    ],
)  # fmt: skip
def test_what_does_not_fit(words, id, message, nearest):
    found = next(finding for finding in findings("model=llama2_7b", *words) if finding.id == id)
    assert found.message.startswith(message.replace("ListConfig", "[1, 2]"))
    assert set(nearest) <= set(found.nearest)


def test_a_conflict_names_both_places():
    (found,) = findings("model=llama2_7b", "megatron.args.lr=1")
    assert found.keys == ("optimizer.lr", "megatron.args.lr")
    assert found.origin == ("conf/optimizer/adam.yaml:2", "override megatron.args.lr=1")


def test_the_same_value_twice_is_no_conflict():
    result, _ = compiled("model=llama2_7b", "optimizer.lr=1e-3", "megatron.args.lr=0.001")
    assert result.keys_of("lr") == ("optimizer.lr", "megatron.args.lr")
    assert result.argv().count("--lr") == 1


@pytest.mark.train
def test_megatrons_own_parser_reads_the_words_back():
    """The real parse_args of the installed megatron-core, in a process of its own."""
    result, _ = compiled("model=llama2_7b", "parallel=tp2pp2", "cluster=cpu", "recompute=full")
    code = (
        "import sys, json; from megatron.training.arguments import parse_args; a = vars(parse_args());"
        "print('RESULT', json.dumps({k: v for k, v in a.items()}, default=str))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *result.argv()], capture_output=True, text=True, check=True, timeout=300
    )
    line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT "))
    parsed = json.loads(line.removeprefix("RESULT "))
    assert {dest: parsed[dest] for dest in result.values()} == result.values()
