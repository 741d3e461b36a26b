"""Shell scripts are read, and never run."""

from __future__ import annotations

import pytest
from importing_helpers import SCRIPTS, dialect, told

from megawrap.errors import ConfigError
from megawrap.importing import Command, import_command, read_script


def read(tmp_path, text: str, **given: str) -> Command:
    file = tmp_path / "train.sh"
    file.write_text(text, encoding="utf-8")
    return read_script(file, given)


def texts(command: Command) -> list[str]:
    return [word.text for word in command.arguments]


def lost(command: Command) -> list[tuple[int | None, str]]:
    return [(one.line, one.words) for one in command.unplaced if one.needed]


def test_arrays():
    command = read_script(SCRIPTS / "arrays.sh", {})
    assert command.program == "pretrain_gpt.py"
    assert command.placed == {"cluster.gpus_per_node": 8, "cluster.nodes": 2, "launcher.master_port": 6001}
    assert command.environment == {"CUDA_DEVICE_MAX_CONNECTIONS": "1", "NCCL_DEBUG": "WARN"}
    words = texts(command)
    assert words[:4] == ["--num-layers", "32", "--hidden-size", "4096"]
    assert words[words.index("--global-batch-size") + 1] == "64"
    assert words[words.index("--save") + 1] == "/data/checkpoints/my run"
    assert words[-2:] == ["--save", "/data/checkpoints/my run"]
    one = import_command(command, dialect())
    assert told(one) == []
    assert one.presets["model"] == "llama2_7b"
    assert one.presets["parallel"] == "tp2"


def test_knobs_take_their_defaults_and_branches_are_followed():
    command = read_script(SCRIPTS / "knobs.sh", {})
    words = texts(command)
    assert words[:6] == ["--num-layers", "4", "--hidden-size", "128", "--num-attention-heads", "4"]
    assert "--mock-data" in words
    assert "--sequence-parallel" in words
    assert "--fp8-format=hybrid" not in words
    assert words[words.index("--eval-iters") + 1] == "-1"
    assert command.environment == {"HSA_NO_SCRATCH_RECLAIM": "1", "STALE": None}
    assert command.placed == {"cluster.gpus_per_node": 4}


def test_what_only_running_tells_is_listed_with_its_line():
    command = read_script(SCRIPTS / "knobs.sh", {})
    assert (45, "if [ -f /etc/special ] --use-flash-attn") in lost(command)
    arguments = import_command(command, dialect()).arguments
    (one,) = arguments.unplaced
    assert one.words == "--tensorboard-dir logs/small/tp2/$(date +%s)"
    assert one.reason == "known only by running the script: $(date +%s) has to be run"
    assert one.line == 10


def test_a_variable_that_the_script_never_sets_is_taken_as_unset_by_its_tests_and_said():
    command = read_script(SCRIPTS / "knobs.sh", {})
    (one,) = [one for one in command.unplaced if one.words == "$DATA_PATH"]
    assert (one.needed, one.line) == (False, 40)
    assert one.reason == "set nowhere in the script, so taken as unset: --set DATA_PATH=VALUE"


def test_variables_can_be_given():
    command = read_script(SCRIPTS / "knobs.sh", {"SIZE": "large", "FP8": "1", "DATA_PATH": "/data/x", "TP": "1"})
    words = texts(command)
    assert words[:4] == ["--num-layers", "32", "--hidden-size", "4096"]
    assert "--fp8-format=hybrid" in words
    assert words[words.index("--data-path") + 1] == "/data/x"
    assert "--sequence-parallel" not in words


def test_a_branch_that_ends_the_script_leaves_no_training():
    with pytest.raises(ConfigError, match="starts no training program") as refused:
        read_script(SCRIPTS / "knobs.sh", {"SIZE": "huge"})
    assert refused.value.findings[0].id == "MW030"


def test_a_shell_inside_srun_and_a_function():
    command = read_script(SCRIPTS / "slurm.sh", {})
    assert command.placed == {"cluster.nodes": 4, "cluster.gpus_per_node": 8}
    assert texts(command)[:2] == ["--num-layers", "8"]
    assert (4, "source ./site.sh") in lost(command)
    (one,) = import_command(command, dialect()).arguments.unplaced
    assert one.words == "--load $WORK/checkpoints"
    assert "$WORK is not set at that point of the script" in one.reason


def test_nothing_is_executed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = read_script(SCRIPTS / "traps.sh", {})
    assert list(tmp_path.iterdir()) == []
    assert command.program == "pretrain_gpt.py"
    assert command.environment == {"OMP_NUM_THREADS": None, "LANG": "C"}
    words = texts(command)
    assert words[:3] == ["--num-layers", "$(touch EXECUTED; echo 3)", "--hidden-size"]
    assert words[3] == "64"
    assert words[5] == 'it\'s; a "path" $HOME \\ [x] ü'
    assert words[-1] == "--bf16"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("for H in $(cat hosts); do A=1; done", "for H in $(cat hosts)"),
        ("for ((i=0; i<3; i++)); do A=1; done", "for  in "),
        ("while read A; do B=1; done", "while read A"),
        ("case $(hostname) in a) A=1;; esac", "case $(hostname)"),
        ("while true; do A=1; done", "while true"),
    ],
)
def test_what_is_not_followed_is_listed(tmp_path, text, shown):
    command = read(tmp_path, f"{text}\npython pretrain_gpt.py --x $A $B")
    assert lost(command)[0] == (1, shown)
    assert command.arguments[-1].problem is not None


def test_arguments_of_the_script(tmp_path):
    text = 'for A in "$@"; do export "${A%%=*}"="${A#*=}"; done\npython pretrain_gpt.py --x ${TP:-1} --y $2'
    file = tmp_path / "train.sh"
    file.write_text(text, encoding="utf-8")
    assert texts(read_script(file, {}, ["TP=4", "PP=2"])) == ["--x", "4", "--y", "PP=2"]
    without = read_script(file, {})
    assert texts(without) == ["--x", "1", "--y", "$2"]
    assert without.arguments[-1].problem == "$2 is an argument of the script: give its arguments after --"
    (said,) = [one for one in without.unplaced if not one.needed and one.kind == "script"]
    assert said.reason == "the script is read without arguments: give its arguments after --"


def test_a_script_that_ends_for_want_of_a_variable_says_which(tmp_path):
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, 'if [ -z "$DATA" ]; then\n  exit 1\nfi\npython pretrain_gpt.py --x $DATA')
    (finding,) = refused.value.findings
    assert finding.message.endswith("without running it: it ends on line 2; taken as unset: $DATA")
    assert finding.nearest[0] == "--set DATA=VALUE"


def test_a_script_that_runs_another_names_it(tmp_path):
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, "srun bash -c 'HOST='\"$HOST\"' bash examples/train.sh'")
    assert refused.value.findings[0].nearest[0] == "--script examples/train.sh"


@pytest.mark.parametrize(
    ("text", "id", "message"),
    [
        ("echo 'never ends\npython pretrain_gpt.py --x", "MW034", ":1: a single quote does not end"),
        ("if true; then\npython pretrain_gpt.py --x\n", "MW034", ":2: fi is missing before 'the end'"),
        ("A=(1 2\n", "MW034", ":1: ( does not end"),
        ("case a in b", "MW034", ":1: ) is missing before 'the end'"),
        ("for A in 1\ndone", "MW034", ":2: do is missing before 'done'"),
        ("echo hello |", "MW030", " starts no training program that can be found without running it"),
        ("echo \x01 $((1x + 08))", "MW030", " starts no training program that can be found without running it"),
        ("{ " * 3000, "MW034", " cannot be read: it is nested too deeply"),
        ("echo hello\n", "MW030", " starts no training program that can be found without running it"),
        ("", "MW030", " starts no training program that can be found without running it"),
    ],
)
def test_scripts_that_cannot_be_read(tmp_path, text, id, message):
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, text)
    (finding,) = refused.value.findings
    assert (finding.id, finding.message) == (id, f"{tmp_path / 'train.sh'}{message}")


def test_no_such_script(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read: No such file or directory"):
        read_script(tmp_path / "none.sh", {})


def test_two_trainings_in_one_script(tmp_path):
    command = read(tmp_path, "python pretrain_gpt.py --x 1 --y 2\npython pretrain_gpt.py --x 3\n")
    assert texts(command) == ["--x", "1", "--y", "2"]
    assert (2, "python") in lost(command)


def test_recursion_ends(tmp_path):
    with pytest.raises(ConfigError, match="starts no training"):
        read(tmp_path, "f() { f; }\nf\n")
