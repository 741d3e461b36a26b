"""import and diff through the command line, to the plan that comes of them."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from megawrap.cli import main

ROOT = Path(__file__).parents[2]
DOCUMENTED = (ROOT / "docs/json.md").read_text(encoding="utf-8")
RELEASE = "megatron=core-0.16.1"
COMMAND = (
    "CUDA_DEVICE_MAX_CONNECTIONS=1 NCCL_DEBUG=INFO torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py "
    "--num-layers 30 --hidden-size 4096 --ffn-hidden-size 11008 --num-attention-heads 32 --seq-length 4096 "
    "--max-position-embeddings 4096 --position-embedding-type rope --normalization RMSNorm --swiglu "
    "--disable-bias-linear --untie-embeddings-and-output-weights --micro-batch-size 1 --global-batch-size 64 "
    "--train-iters 100 --lr 3e-4 --eval-interval 1000 --bf16 --mock-data --tensor-model-parallel-size 2 "
    "--tokenizer-type NullTokenizer --vocab-size 32000 --moe-z-loss-coeff 0.001"
)
ARGUMENTS = COMMAND.partition("pretrain_gpt.py ")[2].split()


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def as_json(capsys, *words: str) -> tuple[int, dict]:
    code = main(list(words))
    return code, json.loads(capsys.readouterr().out)


def refused(capsys, *words: str) -> dict:
    """The first finding of a command that fails."""
    code, answer = as_json(capsys, words[0], "--json", *words[1:])
    assert (code, list(answer)) == (2, ["findings"])
    return answer["findings"][0]


def test_a_command_that_is_handed_to_a_shell(capsys):
    inner = "X=4; torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers $X --bf16"
    code, answer = as_json(
        capsys, "import", "--json", "--check", RELEASE, "--", "A=1", "srun", "-N2", "bash", "-c", inner
    )
    assert (code, answer["findings"], answer["program"]) == (0, [], "pretrain_gpt.py")
    assert answer["environment"] == {"A": "1"}
    assert (answer["keys"]["model.num_layers"], answer["keys"]["cluster.nodes"]) == (4, 2)
    assert answer["keys"]["cluster.gpus_per_node"] == 8


def test_from_a_command_to_the_plan_that_has_its_arguments(capsys):
    code, answer = as_json(
        capsys, "import", RELEASE, "cluster=mi300x", "--output", "out", "--json", "--", *COMMAND.split()
    )
    assert code == 0
    assert (answer["output"], answer["megatron"], answer["program"]) == ("out", "core-0.16.1", "pretrain_gpt.py")
    assert {"group": "model", "choice": "llama2_7b", "differences": 3} in answer["presets"]
    assert answer["arguments"] == {"moe_z_loss_coeff": 0.001}
    assert answer["keys"]["model.num_layers"] == 30
    assert answer["keys"]["cluster.nodes"] == 2
    assert answer["not_placed"] == answer["findings"] == answer["releases_having_all"] == []
    assert [entry.name for entry in Path("out").iterdir()] == ["imported.yaml"]

    code, plan = as_json(capsys, *shlex.split(answer["next"])[1:], "--all", "--json")
    assert code == 0
    assert plan["layout"]["world_size"] == 16
    assert (plan["environment"]["CUDA_DEVICE_MAX_CONNECTIONS"], plan["environment"]["NCCL_DEBUG"]) == ("1", "INFO")
    assert plan["argv"][plan["argv"].index("--num-layers") + 1] == "30"
    _, again = as_json(capsys, "import", RELEASE, "--check", "--json", "--", *plan["argv"])
    _, first = as_json(capsys, "import", RELEASE, "--check", "--json", "--", *ARGUMENTS)
    assert (again["keys"], again["arguments"]) == (first["keys"], first["arguments"])


def test_the_written_folder_takes_overrides_and_a_named_configuration(capsys):
    main(["import", RELEASE, "--output", "out", "--", *ARGUMENTS])
    capsys.readouterr()
    _, plan = as_json(
        capsys, "plan", "--config-dir", "out", "--config-name", "imported", "parallel.tp=4", "cluster.gpus_per_node=4",
        "--json",
    )  # fmt: skip
    assert plan["layout"]["tensor"] == 4
    assert main(["explain", "model.num_layers", "--config-dir", "out"]) == 0
    assert "out/imported.yaml" in capsys.readouterr().out


def test_check_says_whether_it_compiles_back_and_writes_nothing(capsys):
    code, answer = as_json(capsys, "import", RELEASE, "--check", "--json", "--", *COMMAND.split())
    assert (code, answer["round_trip"], answer["differences"]) == (0, True, [])
    assert (answer["output"], answer["next"]) == (None, None)
    assert list(Path().iterdir()) == []


def test_check_of_what_is_not_placed(capsys):
    words = [*ARGUMENTS, "--num-layer", "3", "--lr", "high"]
    code, answer = as_json(capsys, "import", RELEASE, "--check", "-o", "out", "--json", "--", *words)
    assert (code, answer["round_trip"]) == (2, False)
    assert answer["differences"] == [
        {"argument": "--num-layer", "before": "3", "after": None},
        {"argument": "--lr", "before": "high", "after": None},
    ]
    first, second = answer["findings"]
    assert (first["severity"], first["keys"], first["nearest"][0]) == ("warning", ["--num-layer"], "--num-layers")
    assert "invalid float value: 'high'" in second["message"]
    assert (Path("out") / "imported.yaml").is_file()


def test_a_script_its_variables_and_its_arguments(capsys):
    Path("train.sh").write_text(
        f'export NCCL_DEBUG=${{LEVEL:-WARN}}\nLR=${{LR:?}}\ntorchrun --nproc_per_node $1 pretrain_gpt.py '
        f"{' '.join(ARGUMENTS).replace('3e-4', '$LR')} 2>&1 | tee log\n",
        encoding="utf-8",
    )  # fmt: skip
    code, answer = as_json(
        capsys, "import", RELEASE, "--script", "train.sh", "--set", "LR=1e-3", "--check", "--json", "--", "4"
    )
    assert (code, answer["round_trip"], answer["findings"]) == (0, True, [])
    assert answer["environment"] == {"LR": "1e-3", "NCCL_DEBUG": "WARN"}
    assert (answer["keys"]["optimizer.lr"], answer["keys"]["cluster.gpus_per_node"]) == (0.001, 4)


def test_a_command_in_one_quoted_word(capsys):
    code, answer = as_json(capsys, "import", RELEASE, "--check", "--json", "--", f"{COMMAND} | tee log; echo done")
    assert (code, answer["round_trip"]) == (0, True)
    assert answer["environment"]["NCCL_DEBUG"] == "INFO"


def test_what_people_see(capsys):
    assert main(["import", RELEASE, "--check", "-o", "out", "--", *COMMAND.split(), "--num-layer", "3"]) == 2
    shown = capsys.readouterr().out
    assert "22 arguments of core-0.16.1, from the command line" in shown
    assert "model=llama2_7b with 3 differences" in shown
    assert re.search(r"--num-layer 3 +core-0\.16\.1 has no argument --num-layer; it has --num-layers", shown)
    assert "it does not compile back to the same: 1 not placed" in shown
    assert "next: megawrap plan --config-dir out" in shown


@pytest.mark.parametrize(
    ("words", "id", "said"),
    [
        (["import"], "MW008", "import what?"),
        (["import", "--"], "MW008", "import what?"),
        (["import", "--script", "none.sh"], "MW033", "none.sh cannot be read: No such file or directory"),
        (["import", "--script", "."], "MW033", "cannot be read: Is a directory"),
        (["import", "--script", "hello.sh"], "MW030", "hello.sh starts no training program"),
        (["import", "--script", "broken.sh"], "MW034", "broken.sh:1: a double quote does not end"),
        (["import", "--script", "binary.sh"], "MW033", "it is not text"),
        (["import", "--set", "1=2", "--", "x.py"], "MW008", "--set 1=2: NAME=VALUE is expected"),
        (["import", "--", "ls", "-l"], "MW030", "starts no training program"),
        (["import", "--", "python", "train.py"], "MW030", "without any --flag"),
        (["import", "--", "python", "-c", "print()"], "MW030", "starts no training program"),
        (["import", "--", "a 'b"], "MW034", "a single quote does not end"),
        (["import", "model=llama2_7b", "--", "x.py", "--bf16"], "MW035", "import takes megatron=RELEASE"),
        (["import", "megatron=core-1", "--", "x.py", "--bf16"], "MW001", "there is no such megatron"),
        (["import", "--config-dir", ".", "--", "x.py", "--bf16"], "MW008", "--config-dir has no use here"),
        (["import", RELEASE, "-o", "hello.sh", "--", "x.py", "--bf16"], "MW031", "the folder is there already"),
        (["import", RELEASE, "-o", ".", "--force", "--", "x.py", "--bf16"], "MW031", "holds something else"),
        (["plan", "--", "--bf16"], "MW008", "it takes no words after --"),
        (["diff", "model=llama2_7b"], "MW008", "it compares two, and there are 1"),
        (["diff", "model=llama2_7b", "nothing"], "MW037", "nothing is neither overrides"),
        (["diff", "model=llama2_7b", "model=llama2_8b"], "MW001", "there is no such model"),
        (["diff", "example:rocm25-llama2-7", "example:rocm25-llama2-8"], "MW036", "there is no such example run"),
    ],
)  # fmt: skip
def test_mistakes_are_findings(capsys, words, id, said):
    Path("hello.sh").write_text("echo hello\n", encoding="utf-8")
    Path("broken.sh").write_text('echo "hello\n', encoding="utf-8")
    Path("binary.sh").write_bytes(b"\xff\xfe\x00")
    finding = refused(capsys, *words)
    assert finding["id"] == id
    assert said in finding["message"]


def test_diff_as_json(capsys):
    config = "model=llama2_7b parallel=tp8 megatron=rocm-2025-08 cluster=mi300x"
    code, found = as_json(capsys, "diff", config, "example:rocm25-llama2-7", "--json")
    assert code == 0
    assert found["a"] == {"name": config, "kind": "configuration", "megatron": "rocm-2025-08"}
    assert found["b"]["kind"] == "example"
    assert found["same"] is False
    rows = {row["argument"]: row for row in found["arguments"]}
    assert (rows["global_batch_size"]["a"], rows["global_batch_size"]["b"]) == (128, 8)
    assert rows["global_batch_size"]["a_origin"] == "conf/base.yaml:6"
    assert "num_layers" not in rows
    assert {"variable": "NCCL_PROTO", "a": None, "b": "Simple"} in found["environment"]
    assert found["parameters"] == {"a": 6738415616, "b": 6738415616}
    assert {"size": "micro_batches", "a": 128, "b": 8} in found["layout"]


def test_diff_for_people(capsys):
    assert main(["diff", f"model=llama2_7b {RELEASE}", f"model=llama2_13b {RELEASE}"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"hidden_size +4096  conf/model/llama2_7b\.yaml:\d+ +5120  conf/model/llama2_13b", shown)
    assert main(["diff", f"model=llama2_7b {RELEASE}", f"{RELEASE} model=llama2_7b"]) == 0
    assert "the same arguments, environment and layout" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["import", RELEASE, "--check", "--json", "--", *ARGUMENTS],
        ["diff", f"model=llama2_7b {RELEASE}", "example:rocm26-llama3-8", "--json"],
    ],
)
def test_every_key_is_documented(capsys, words):
    _, answer = as_json(capsys, *words)
    section = DOCUMENTED.partition(f"\n## {words[0]}\n")[2].partition("\n## ")[0]
    for key in answer:
        assert f"`{key}`" in section, f"{key} is not in docs/json.md under {words[0]}"
