"""The command: exact messages, exit codes and events."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest
from preprocess_helpers import ROOT, TOKENIZER, command, lines, names, run_command

from megawrap.preprocess.cli import main
from megawrap.preprocess.tokenizers import TOKENIZERS

HELP = "(--help tells all arguments)"


@pytest.fixture
def call(tmp_path, capfd):
    """Run the command in this process: (exit code, standard output, standard error)."""

    def run(data: bytes, *words: str) -> tuple[int, str, str]:
        file = tmp_path / "in.jsonl"
        file.write_bytes(data)
        start = ["--input", str(file), "--output-prefix", str(tmp_path / "out"), "--tokenizer-type", "Llama2Tokenizer"]
        code = main([*start, "--tokenizer-model", str(TOKENIZER), "--workers", "1", *words])
        out, err = capfd.readouterr()
        return code, out.replace(str(tmp_path), "DIR"), err.replace(str(tmp_path), "DIR")

    return run


def test_a_good_run_says_what_it_made(call, tmp_path):
    code, out, err = call(lines(["Hello world!"] * 1000), "--append-eod")
    assert (code, err) == (0, "")
    why, made = out.splitlines(keepends=True)
    assert why.startswith(("encoded with sentencepiece ", "encoded with gigatoken "))
    head, tail = made.split(" (all in ")
    assert head == "DIR/out_text_document.bin and .idx: 1,000 documents, 7,000 tokens"
    assert re.fullmatch(r"\d+\.\d s\)\n", tail)
    assert names(tmp_path) == ["in.jsonl", "out_text_document.bin", "out_text_document.idx", "out_text_document.json"]


def test_events_are_lines_of_json(call):
    code, out, err = call(lines(["Hello world!"] * 1000), "--progress", "json")
    events = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert events[0] == {
        "event": "start",
        "input": "DIR/in.jsonl",
        "files": 1,
        "outputs": ["DIR/out_text_document"],
        "total_bytes": 25000,
        "tokenizer": "Llama2Tokenizer",
        "engine": events[0]["engine"],
        "why": events[0]["why"],
        "vocab_size": 4096,
        "dtype": "uint16",
        "append_eod": False,
        "workers": 1,
    }
    assert events[-2].pop("seconds") > 0
    counts = {"documents": 1000, "tokens": 6000}
    more = {"rejected": 0, "resumed_bytes": 0}
    assert events[-2] == {"event": "progress", "bytes": 25000, "total_bytes": 25000, **counts, **more}
    assert events[-1].pop("seconds") > 0
    done = {"event": "done", "prefix": "DIR/out_text_document", **counts, "rejected": {}, "reused": False}
    assert events[-1] == {**done, "engine": events[0]["engine"]}


@pytest.mark.parametrize(
    ("data", "words", "code", "messages"),
    [
        (
            b'{"text": "x"}\n{"txt": "y"}\n',
            [],
            1,
            ['MW605 DIR/in.jsonl, line 2 (byte 14): there is no key "text"; this line has "txt"'],
        ),
        (b"", [], 2, ["MW603 DIR/in.jsonl is empty: there is nothing to tokenize"]),
        (b"\n", [], 1, ["MW606 DIR/in.jsonl gives no tokens: there are only blank lines (key text)"]),
        (
            b"{}\n",
            ["--tokenizer-model", "none.model", "--workers", "0"],
            2,
            [
                "MW600 --workers 0: at least one process has to do the work (nearest: 1)",
                "MW612 none.model: there is no such file",
            ],
        ),
        (
            b"{}\n",
            ["--tokenizer-type", "LLama2Tokenizer"],
            2,
            [
                "MW610 --tokenizer-type LLama2Tokenizer is not among the types that can be used here: "
                f"{', '.join(TOKENIZERS)} (nearest: Llama2Tokenizer, TikTokenizer, GPT2BPETokenizer)"
            ],
        ),
        (
            b"{}\n",
            ["--workers", "two"],
            2,
            [f"MW600 argument --workers: invalid int value: 'two' {HELP}"],
        ),
        (
            b"{}\n",
            ["--partitions", "2"],
            2,
            [f"MW600 unrecognized arguments: --partitions 2 {HELP}"],
        ),
    ],
)
def test_errors_are_told_in_a_line_each_and_as_an_event(call, tmp_path, data, words, code, messages):
    returned, out, err = call(data, *words, "--progress", "json")
    assert returned == code
    assert err.splitlines() == [f"megawrap.preprocess: error: {message}" for message in messages]
    event = json.loads(out.splitlines()[-1])
    assert event["event"] == "error"
    assert [(finding["id"], finding["severity"]) for finding in event["findings"]] == [
        (m[:5], "error") for m in messages
    ]
    assert names(tmp_path) == ["in.jsonl"]
    returned, out, again = call(data, *words)
    assert (returned, out, again) == (code, "", err), "without --progress json standard output stays empty"


def test_no_arguments_are_an_error_without_a_traceback(capsys):
    missing = "the following arguments are required: --input, --output-prefix, --tokenizer-type"
    assert main([]) == 2
    assert capsys.readouterr().err == f"megawrap.preprocess: error: MW600 {missing} {HELP}\n"


def test_the_help_names_the_tokenizers(capsys):
    with pytest.raises(SystemExit) as left:
        main(["--help"])
    assert left.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "one of Llama2Tokenizer, SentencePieceTokenizer, " in shown
    assert all(kind in shown for kind in TOKENIZERS)


def test_it_runs_as_a_module_from_any_folder(tmp_path):
    (tmp_path / "in.jsonl").write_bytes(lines(["x"]))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = command("--input", "in.jsonl", "--output-prefix", "deep/out")
    done = subprocess.run(
        words, check=False, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert names(tmp_path / "deep") == ["out_text_document.bin", "out_text_document.idx", "out_text_document.json"]


def test_a_reader_that_goes_away_ends_the_run_quietly(tmp_path):
    (tmp_path / "in.jsonl").write_bytes(lines(["some words"] * 1000))
    words = command("--input", tmp_path / "in.jsonl", "--output-prefix", tmp_path / "out", "--progress", "json")
    process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    assert (process.wait(timeout=60), process.stderr.read()) == (1, "")
    process.stderr.close()
    assert names(tmp_path) == ["in.jsonl"]


def test_it_needs_neither_torch_nor_megatron_nor_the_rest_of_megawrap():
    code = "import sys, megawrap.preprocess.cli, megawrap.preprocess.worker; print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    modules = done.stdout.split()
    assert not {"torch", "megatron", "hydra", "omegaconf", "rich"} & set(modules)
    ours = [
        module for module in modules if module.startswith("megawrap.") and not module.startswith("megawrap.preprocess")
    ]
    assert ours == ["megawrap.errors"]


def test_a_wrong_encoding_of_the_terminal_does_no_harm(tmp_path):
    (tmp_path / "in.jsonl").write_bytes('{"größe": 1}\n'.encode())
    words = ["--input", tmp_path / "in.jsonl", "--output-prefix", tmp_path / "out", "--progress", "json"]
    done = run_command(*words, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["event"] == "error"
