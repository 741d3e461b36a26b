"""The command line: what each verb prints, its exit code, and that planning stays light."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from megawrap.cli import main

ROOT = Path(__file__).parents[2]
TINY = ["model=llama_tiny", "parallel=tp2", "cluster=cpu", "data=sample"]


def as_json(capsys, *words: str) -> tuple[int, dict]:
    code = main([*words, "--json"])
    captured = capsys.readouterr()
    return code, json.loads(captured.out)


def test_plan_json_holds_what_is_documented(capsys):
    code, plan = as_json(capsys, "plan", *TINY)
    assert code == 0
    assert plan["model"] == {"name": "llama_tiny", "parameters": 1774720}
    assert plan["layout"]["world_size"] == 2
    assert plan["layout"]["tensor"] == 2
    assert plan["layout"]["data"] == 1
    assert plan["environment"]["CUDA_DEVICE_MAX_CONNECTIONS"] == "1"
    assert [step["name"] for step in plan["steps"]] == ["preprocess", "preflight", "train"]
    for step in plan["steps"]:
        assert set(step) == {"name", "argv", "environment", "hosts"}
    assert plan["steps"][2]["argv"][-len(plan["argv"]) :] == plan["argv"]
    assert plan["findings"] == []
    documented = (ROOT / "docs/json.md").read_text()
    for key in plan:
        assert f"`{key}`" in documented, f"{key} is not in docs/json.md"


def test_a_wrong_plan_is_still_one_object_with_findings_and_exit_code_2(capsys):
    code, plan = as_json(capsys, "plan", "model=llama2_7b", "parallel.tp=5")
    assert code == 2
    assert {finding["id"] for finding in plan["findings"]} >= {"MW101", "MW103"}
    assert set(plan["findings"][0]) == {"id", "severity", "keys", "message", "nearest", "origin"}


def test_a_mistake_under_json_is_findings_too(capsys):
    code, answer = as_json(capsys, "plan", "model=llama2_8b")
    assert code == 2
    assert [finding["id"] for finding in answer["findings"]] == ["MW001"]


def test_argv_is_a_word_a_line(capsys):
    assert main(["plan", *TINY, "--format", "argv"]) == 0
    words = capsys.readouterr().out.splitlines()
    assert words[:2] == ["--num-layers", "4"]


def test_shell_gives_the_same_words_back(capsys, weird_path):
    """Quoting is tested under a real shell, with a recorder in place of Python."""
    recorder = weird_path / "python"
    recorder.write_text(f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    recorder.chmod(0o755)
    own = [f"launcher.python='{_escaped(recorder)}'", f"run.dir='{_escaped(weird_path / 'run')}'"]
    assert main(["plan", *TINY, *own, "--format", "shell"]) == 0
    script = weird_path / "plan.sh"
    script.write_text(capsys.readouterr().out)
    done = subprocess.run(["sh", str(script)], capture_output=True, text=True, check=True)
    ran = [json.loads(line) for line in done.stdout.splitlines()]
    _, plan = as_json(capsys, "plan", *TINY, *own)
    assert ran == [step["argv"][1:] for step in plan["steps"]]


def _escaped(path: Path) -> str:
    """For a single-quoted value in Hydra's grammar, where a backslash is one unless a quote follows."""
    return str(path).replace("'", "\\'")


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (["plam"], 2,
         "error MW007  'plam' is neither a verb (launch, plan, explain, import, diff, preprocess, data, "
         "tokenizer, preflight, models, rules, surface) nor an override (KEY=VALUE)\n    try: plan\n"),
        (["plan", "--fromat", "json"], 2, "error MW008  megawrap plan: unrecognized arguments: --fromat\n"),
        (["plan"], 2,
         "error MW009  no model is chosen: model=NAME (`megawrap models` lists them), or set its dimensions\n"
         "    try: model=llama2_7b  or  model=llama3_8b\n"),
        (["plan", "model=llama2_7b", "parallel.tpp=2"], 2,
         "error MW002  parallel.tpp: there is no such key. An argument of Megatron that no section has is set by "
         "megatron.args.tpp=VALUE\n    parallel.tpp: set by override parallel.tpp=2\n"
         "    try: parallel.tp  or  parallel.pp  or  parallel.etp\n"),
        (["plan", "model=llama2_7b", "parallel.tp=2.5"], 2,
         "error MW003  parallel.tp = 2.5: Value '2.5' of type 'float' could not be converted to Integer; it takes int\n"
         "    parallel.tp: set by override parallel.tp=2.5\n"),
        (["plan", "model=llama2_7b", "parallel.tp=5", "cluster=cpu"], 2,
         "error MW103  32 attention heads cannot be shared by TP = 5 ranks: 32 % 5 = 2\n"
         "    parallel.tp: set by override parallel.tp=5\n"
         "    model.num_attention_heads: set by conf/model/llama2_7b.yaml:8\n"
         "    try: parallel.tp=4  or  parallel.tp=2  or  parallel.tp=8\n"
         "error MW106  a feed-forward width of 11008 cannot be shared by TP = 5 ranks: 11008 % 5 = 3\n"
         "    parallel.tp: set by override parallel.tp=5\n"
         "    model.ffn_hidden_size: set by conf/model/llama2_7b.yaml:7\n"
         "    try: parallel.tp=4  or  parallel.tp=2  or  parallel.tp=8\n"
         "error MW109  4096 tokens on each rank cannot be shared by TP = 5 ranks\n"
         "    train.seq_length: set by conf/base.yaml:4\n"
         "    parallel.tp: set by override parallel.tp=5\n"
         "    try: train.seq_length=4095\n"),
        (["plan", "model=llama2_7b", "parallel=tp2", "cluster=mi300x", "cluster.gpus_per_node=7"], 2,
         "error MW101  a world of 7 ranks cannot hold TP x PP x CP = 2 x 1 x 1 = 2: 7 % 2 = 1\n"
         "    cluster.nodes: not set\n"),
        (["plan", "model=llama2_7b", "data=prefix", "data.prefix=/nowhere/tokens"], 2,
         "error MW651  data.prefix = /nowhere/tokens: there is no /nowhere/tokens.bin and no /nowhere/tokens.idx\n"
         "    data.prefix: set by override data.prefix=/nowhere/tokens\n"),
        (["plan", "model=llama2_7b", "data=jsonl", "data.input=/nowhere.jsonl", "data.output_prefix=x",
          "tokenizer=llama2", "tokenizer.model=/nowhere.model"], 2,
         "error MW650  data.input = /nowhere.jsonl: there is no such file\n"
         "    data.input: set by override data.input=/nowhere.jsonl\n"
         "error MW654  tokenizer.model = /nowhere.model: there is no such file\n"
         "    tokenizer.model: set by override tokenizer.model=/nowhere.model\n"),
        (["plan", "model=llama2_7b", "megatron=core-0.16.1", "megatron.args.fp8_recipy=delayed"], 2,
         "error MW010  megatron.args.fp8_recipy: core-0.16.1 has no argument --fp8-recipy\n"
         "    megatron.args.fp8_recipy: set by override megatron.args.fp8_recipy=delayed\n"
         "    try: --fp8-recipe"),
        (["explain", "parallel.tq"], 2, "error MW002  parallel.tq: there is no such key, section or rule\n"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_messages(capsys, words, code, expected):
    assert main(words) == code
    captured = capsys.readouterr()
    assert "\n".join(line.rstrip() for line in captured.err.splitlines()).startswith(expected.rstrip("\n"))
    assert captured.out == ""
    assert "Traceback" not in captured.err


def test_empty_corpus(capsys, tmp_path):
    corpus = tmp_path / "empty.jsonl"
    corpus.touch()
    words = [
        "plan",
        "model=llama_tiny",
        "data=jsonl",
        f"data.input={corpus}",
        "data.output_prefix=x",
        "tokenizer=sample",
    ]
    assert main(words) == 2
    assert f"error MW652  data.input = {corpus} is empty: nothing to train on" in capsys.readouterr().err


def test_without_an_accelerator_the_plan_is_shown_the_ways_on_named_and_the_exit_code_is_5(capsys, monkeypatch):
    monkeypatch.setattr("megawrap.hardware.machine.detect", lambda: None)
    assert main(["model=llama2_7b", "parallel=tp2"]) == 5
    captured = capsys.readouterr()
    assert "--num-layers 32" in captured.out
    assert "error MW720  no accelerator is on this machine" in captured.err
    assert "try: cluster=cpu" in captured.err


@pytest.mark.parametrize("word", ["launch", "plan", "explain", "preprocess", "preflight", "models"])
def test_every_verb_has_help(capsys, word):
    with pytest.raises(SystemExit) as done:
        main([word, "--help"])
    assert done.value.code == 0
    assert f"megawrap {word}" in capsys.readouterr().out


def test_the_page_for_everything_names_verbs_groups_and_exit_codes(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    page = capsys.readouterr().out
    for word in ("launch", "preflight", "llama2_7b", "tp2pp2", "130 interrupted"):
        assert word in page


def test_explain_says_what_a_key_means_and_who_set_it(capsys):
    assert main(["explain", "parallel.sp", "model=llama2_7b", "parallel=tp2"]) == 0
    said = capsys.readouterr().out
    assert "Sequence parallelism" in said
    assert "value: True  (conf/parallel/base.yaml:" in said
    assert "--sequence-parallel, default False" in said


def test_models_lists_computed_parameters(capsys):
    _, answer = as_json(capsys, "models")
    assert {row["name"]: row["parameters"] for row in answer["models"]}["llama2_7b"] == 6738415616


def test_planning_imports_neither_torch_nor_megatron():
    code = (
        "import sys; from megawrap.cli import main; assert main(['plan', 'model=llama2_7b', 'parallel=tp2']) == 0;"
        "heavy = {'torch', 'megatron', 'numpy', 'psutil', 'sentencepiece'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=ROOT)


def test_planning_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["plan", *TINY]) == 0
    assert list(tmp_path.iterdir()) == []


def test_hydra_stays_hydra(tmp_path):
    """--cfg and --multirun are Hydra's own."""
    command = [sys.executable, "-m", "megawrap"]
    words = [*command, "model=llama2_7b", "--cfg", "job"]
    shown = subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT)
    assert "num_layers: 32" in shown.stdout
    sweep = ["--multirun", "model=llama2_7b", "parallel=tp1,tp2", "megatron=core-0.16.1", f"hydra.sweep.dir={tmp_path}"]
    swept = subprocess.run([*command, *sweep], capture_output=True, text=True, cwd=ROOT, check=False)
    # A release is for plans only, so every job of the sweep ends with "no resource", and so does the sweep.
    assert swept.returncode == 5, swept.stderr
    assert {folder.name for folder in tmp_path.iterdir() if folder.is_dir()} == {"0", "1"}
    assert swept.stderr.count("MW723") == 2
