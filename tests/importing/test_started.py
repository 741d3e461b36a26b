"""Launcher words become keys of the cluster and the launcher, or are listed."""

from __future__ import annotations

import pytest
from importing_helpers import command, imported

from megawrap.errors import ConfigError
from megawrap.importing import Word, read_command

TAIL = "pretrain_gpt.py --num-layers 2"


@pytest.mark.parametrize(
    ("words", "placed"),
    [
        ("torchrun", {"cluster.gpus_per_node": 1}),
        ("torchrun --nproc_per_node 8 --nnodes 1 --master_port 6000", {
            "cluster.gpus_per_node": 8, "cluster.nodes": 1, "launcher.master_port": 6000}),
        ("torchrun --nproc-per-node=8 --nnodes=2 --rdzv-endpoint=head:29400 --rdzv_backend c10d", {
            "cluster.gpus_per_node": 8, "cluster.nodes": 2, "launcher.master_port": 29400}),
        ("torchrun --nproc_per_node gpu", {}),
        ("python", {"cluster.gpus_per_node": 1}),
        ("python3.12 -u -m torch.distributed.launch --nproc_per_node 4", {"cluster.gpus_per_node": 4}),
        ("srun -N 4 -n 4 torchrun --nnodes 4 --nproc_per_node 8", {"cluster.gpus_per_node": 8, "cluster.nodes": 4}),
        ("srun -N2 --ntasks-per-node=8 python", {"cluster.gpus_per_node": 8, "cluster.nodes": 2}),
        ("srun -N 2 --gpus-per-node=8 python", {"cluster.gpus_per_node": 8, "cluster.nodes": 2}),
        ("srun --gpus-per-node mi300x:8 --ntasks-per-node 4 python", {"cluster.gpus_per_node": 4}),
        ("srun --ntasks-per-node 4 --gpus-per-node 8 python", {"cluster.gpus_per_node": 4}),
        ("srun -N 2 -n 16 -l python", {"cluster.gpus_per_node": 8, "cluster.nodes": 2}),
        ("mpirun -np 16 -H a:8,b:8 --mca pml ucx -x NCCL_DEBUG=INFO --allow-run-as-root python -u", {
            "cluster.gpus_per_node": 8, "cluster.nodes": 2, "launcher.hosts": ["a", "b"]}),
        ("mpirun -np 4 python", {"cluster.gpus_per_node": 4}),
    ],
)  # fmt: skip
def test_placed(words, placed):
    assert command(f"{words} {TAIL}").placed == placed


def test_environment():
    found = command(f"A=1 env -u B C=x=y mpirun -np 2 -x D=3 -x E python {TAIL}")
    assert found.environment == {"A": "1", "B": None, "C": "x=y", "D": "3"}
    assert [(one.words, one.reason) for one in found.unplaced] == [
        ("-x E", "the value of E comes from the shell, and reaches the ranks from there")
    ]


def test_what_has_no_key_is_listed_with_the_reason():
    found = command(f"torchrun --nnodes 2 --nproc_per_node auto --max_restarts 3 --master_addr head {TAIL}")
    assert [(one.words, one.reason, one.needed) for one in found.unplaced] == [
        ("--nproc_per_node auto", "cluster.gpus_per_node is a number: set it", True),
        ("--max_restarts 3", "an option of torchrun that megawrap has no key for", True),
        ("--master_addr head", "launcher.hosts names every machine, this one first: set it", True),
    ]


@pytest.mark.parametrize(
    ("words", "listed"),
    [
        ("--nnodes 2 --rdzv-endpoint h0:29500", "--rdzv-endpoint h0"),
        ("--nnodes=2 --rdzv_endpoint=h0:29500", "--rdzv_endpoint=h0"),
        ("--nnodes 1:2 --rdzv-endpoint h0:29500", "--rdzv-endpoint h0"),
    ],
)
def test_a_meeting_point_of_several_machines_is_listed(words, listed):
    found = command(f"torchrun {words} {TAIL}")
    assert found.placed["launcher.master_port"] == 29500
    assert listed in [one.words for one in found.unplaced if one.needed]


def test_what_megawrap_does_itself_is_not_needed():
    found = command(f"torchrun --node_rank 0 --master_addr localhost --standalone {TAIL}")
    assert [(one.words, one.needed) for one in found.unplaced] == [
        ("--node_rank 0", False), ("--standalone", False), ("--master_addr localhost", False),
    ]  # fmt: skip


def test_ranks_that_do_not_spread_evenly():
    (one,) = command(f"srun -N 3 -n 8 python {TAIL}").unplaced
    assert one.reason == "they do not spread evenly over 3 machines"


def test_another_program_is_noted():
    (one,) = command("torchrun --nproc_per_node 8 pretrain_deepseek.py --num-layers 2").unplaced
    assert (one.kind, one.words, one.needed) == ("program", "pretrain_deepseek.py", False)


@pytest.mark.parametrize(
    "program",
    ["pretrain_bert.py", "/m/pretrain_t5.py", "pretrain_vlm.py", "pretrain_mamba.py", "pretrain_hybrid.py",
     "pretrain_retro.py", "pretrain_ict.py", "pretrain_vision_dino.py", "examples/multimodal/train.py"],
)  # fmt: skip
def test_another_model_than_gpt_is_not_placed(program):
    one = imported(f"torchrun --nproc_per_node 8 {program} --num-layers 2")
    (row,) = [row for row in one.unplaced if row.kind == "program"]
    assert (row.words, row.needed) == (program, True)
    assert "another model than GPT" in row.finding().message
    assert [(lost.argument, lost.is_lost) for lost in one.check()] == [(program, True)]


@pytest.mark.parametrize(
    "program",
    [
        "pretrain_gpt.py",
        "/m/pretrain_gpt.py",
        "pretrain_deepseek_v3.py",
        "pretrain_llama.py",
        "/multimodal.py",
        "my.py",
    ],
)
def test_gpt_and_programs_that_are_not_known_are_accepted(program):
    one = imported(f"torchrun --nproc_per_node 8 {program} --num-layers 2")
    assert (one.check(), [row.words for row in one.unplaced if row.needed]) == ([], [])
    listed = [row.words for row in one.unplaced if row.kind == "program"]
    assert listed == ([] if program.endswith("pretrain_gpt.py") else [program])


def test_arguments_alone():
    found = command("--num-layers 2 --bf16")
    assert (found.program, found.placed) == (None, {})
    assert [word.text for word in found.arguments] == ["--num-layers", "2", "--bf16"]


@pytest.mark.parametrize("words", ["bash train.sh", "torchrun --nproc_per_node 8", "ls -l"])
def test_no_training(words):
    with pytest.raises(ConfigError) as refused:
        command(words)
    assert refused.value.findings[0].id == "MW030"


def test_a_program_in_a_folder_that_only_running_tells():
    words = [Word("torchrun"), Word("$MEGATRON/pretrain_gpt.py", problem="$MEGATRON is not set"), Word("--bf16")]
    found = read_command(words, "x")
    assert (found.program, found.unplaced) == ("$MEGATRON/pretrain_gpt.py", ())


@pytest.mark.parametrize(
    ("words", "placed"),
    [
        ("deepspeed --num_gpus 8 --num_nodes=2 --master_port 6000", {
            "cluster.gpus_per_node": 8, "cluster.nodes": 2, "launcher.master_port": 6000}),
        ("accelerate launch --num_processes 16 --num_machines 2 --multi_gpu", {
            "cluster.gpus_per_node": 8, "cluster.nodes": 2}),
        ("numactl -N 0 sudo -u me timeout 3600 torchrun --nproc_per_node 4", {"cluster.gpus_per_node": 4}),
    ],
)  # fmt: skip
def test_other_launchers(words, placed):
    assert command(f"{words} {TAIL}").placed == placed


def test_a_program_that_is_not_understood_is_listed():
    (one,) = command(f"docker run -v /a:/b image torchrun {TAIL}").unplaced
    assert (one.words, one.needed) == ("docker run -v /a:/b image", True)
    (one,) = command("deepspeed --hostfile hosts --num_gpus 8 pretrain_gpt.py --num-layers 2").unplaced
    assert (one.words, one.reason) == ("--hostfile hosts", "the file is not read: set launcher.hosts")


@pytest.mark.parametrize("operator", ["|", "&&", ";", "||", "&", ">", "2>&1", ">>"])
def test_a_shells_operator_ends_the_command(operator):
    found = command(f"torchrun {TAIL} {operator} tee log --num-layers 3")
    assert [word.text for word in found.arguments] == ["--num-layers", "2"]
    (one,) = found.unplaced
    assert one.words == f"{operator} tee log --num-layers 3"


def test_no_flag_at_all():
    with pytest.raises(ConfigError, match=r"starts train\.py without any --flag: there is nothing to import"):
        command("python train.py")
    with pytest.raises(ConfigError) as refused:
        command("bash -x train.sh")
    assert refused.value.findings[0].nearest == ("--script train.sh",)


def test_a_secret_is_not_written_down():
    found = command(f"WANDB_API_KEY=abc HF_TOKEN= TOKENIZER_MODEL=x torchrun {TAIL}")
    assert found.environment == {"HF_TOKEN": "", "TOKENIZER_MODEL": "x"}
    (one,) = found.unplaced
    assert (one.kind, one.words, one.needed) == ("environment", "WANDB_API_KEY=***", True)
