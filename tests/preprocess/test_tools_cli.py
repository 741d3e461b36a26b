"""`megawrap data` as people and programs use it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tools_helpers import make, read

from megawrap.cli.app import main
from megawrap.preprocess.sample.make import TOKENIZER
from megawrap.preprocess.settings import TokenizerSettings
from megawrap.preprocess.tokenizers import build

DOCUMENTS = [[[5] * size] for size in (1, 2, 3, 40, 50, 60, 70, 80, 90, 900)]


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch) -> str:
    """A dataset in the working folder."""
    monkeypatch.chdir(tmp_path)
    return make(Path("d"), DOCUMENTS)


def answer(capsys, *words: str) -> tuple[int, dict]:
    code = main(["data", *words, "--json"])
    captured = capsys.readouterr()
    assert captured.err == ""
    return code, json.loads(captured.out)


def ids(found: dict) -> list[str]:
    return [finding["id"] for finding in found["findings"]]


def test_inspect(prefix, capsys):
    code, found = answer(capsys, "inspect", "d", "--samples", "2", "--sample-tokens", "3")
    (one,) = found["datasets"]
    assert (code, found["findings"]) == (0, [])
    assert set(one) == {
        "prefix", "dtype", "documents", "sequences", "tokens", "bin_bytes", "idx_bytes", "multimodal",
        "empty_documents", "shortest", "mean", "longest", "quantiles", "histogram", "origin", "samples",
    }  # fmt: skip
    assert (one["documents"], one["tokens"]) == (10, 1296)
    assert [sample["ids"] for sample in one["samples"]] == [[5], [5, 5, 5]]


def test_inspect_for_people(prefix, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["data", "inspect", "d"]) == 0
    out = capsys.readouterr().out
    assert "10 documents, 10 sequences, 1,296 tokens" in out
    assert re.search(r"64 - 127 +3 +█{30} +18\.5%", out), out
    assert re.search(r"512 - 1,023 +1 +█{10} +69\.4%", out), out
    assert max(map(len, out.splitlines())) <= 80


def test_inspect_decodes_and_shows_no_control_characters(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tokenizer = build(TokenizerSettings(type="Llama2Tokenizer", model=TOKENIZER))
    make(Path("d"), [[tokenizer.encode_batch(["a \x1b[31m red\nline"]).ids.tolist()]])
    assert main(["data", "inspect", "d", "tokenizer=sample"]) == 0
    out = capsys.readouterr().out
    assert "a \\x1b[31m red\\nline" in out
    assert "\x1b" not in out


def test_another_tokenizer_than_the_manifests_is_told(prefix, capsys):
    origin = {"tokenizer_type": "GPT2BPETokenizer", "tokenizer_sha256": "0", "vocab_size": 50257}
    Path("d.json").write_text(json.dumps({"origin": origin}))
    for action in ("inspect", "verify"):
        code, found = answer(capsys, action, "d", "tokenizer=sample")
        assert (code, ids(found)) == (0, ["MW670"])


def test_verify(prefix, capsys):
    code, found = answer(capsys, "verify", "d", "--deep", "--vocab-size", "6")
    assert (code, found["findings"]) == (0, [])
    assert found["datasets"] == [
        {"prefix": "d", "dtype": "uint16", "documents": 10, "sequences": 10, "tokens": 1296, "checked_ids": True,
         "vocab_size": 6, "highest_id": 5, "sound": True}
    ]  # fmt: skip
    code, found = answer(capsys, "verify", "d", "e", "--deep", "--vocab-size", "5")
    assert (code, ids(found), [one["sound"] for one in found["datasets"]]) == (1, ["MW660", "MW640"], [False, False])
    code, found = answer(capsys, "verify", "d", "--deep", "tokenizer=sample")
    assert (code, found["datasets"][0]["vocab_size"]) == (0, 4096)


def test_verify_for_people(prefix, capsys):
    Path("d.bin").write_bytes(b"")
    assert main(["data", "verify", "d", "e"]) == 1
    captured = capsys.readouterr()
    assert captured.out == "broken  d  10 documents, 10 sequences\n"
    lines = captured.err.splitlines()
    assert lines[0].startswith("error MW643  d.bin has 0 bytes, and its index describes 2592: 2592 are missing;")
    assert lines[1] == "error MW640  e: there is no e.bin and no e.idx"


def test_merge_and_split(prefix, capsys):
    make(Path("e"), [[[9]]])
    code, found = answer(capsys, "merge", "d.bin", "d.idx", "e.idx", "-o", "out")
    assert (code, found["findings"]) == (0, [])
    assert found["datasets"] == [{"prefix": "out", "dtype": "uint16", "documents": 11, "sequences": 11, "tokens": 1297}]
    assert read("out") == [*DOCUMENTS, [[9]]]
    code, found = answer(capsys, "merge", "d", "e", "-o", "out")
    assert (code, found["findings"][0]["nearest"]) == (2, ["--overwrite"])
    assert answer(capsys, "merge", "e", "-o", "out", "--overwrite")[0] == 0
    code, found = answer(capsys, "split", "d", "--fractions", "0.8,0.2", "--names", "a,b", "-o", "p")
    assert (code, [one["prefix"] for one in found["datasets"]]) == (0, ["p_a", "p_b"])
    assert read("p_b") == DOCUMENTS[8:]
    assert main(["data", "split", "d", "--fractions", "1,1", "--seed", "1"]) == 0
    assert re.search(r"^d_valid +5 +5 ", capsys.readouterr().out, re.MULTILINE)


def test_stats_of_a_run(prefix, capsys):
    make(Path("e=1"), [[[9] * 100]])
    code, found = answer(capsys, "stats", "d", "e=1", "--tokens", "2k", "--weights", "1,3")
    assert (code, found["run"], found["findings"]) == (0, {"tokens": 2000, "seq_length": None}, [])
    assert [(one["prefix"], one["drawn"], one["epochs"]) for one in found["datasets"]] == [
        ("d", 500, 500 / 1296),
        ("e=1", 1500, 15.0),
    ]
    make(Path("f"), [[[9] * 100]])
    run = ["data=blend", "data.blend=[0.25,d,0.75,f]", "data.split='1,0,0'", "model=llama_tiny",
           "train.seq_length=64", "train.train_iters=10", "train.global_batch_size=4"]  # fmt: skip
    code, found = answer(capsys, "stats", *run)
    assert (code, found["run"]) == (0, {"tokens": 2560, "seq_length": 64})
    assert [(one["weight"], one["drawn"]) for one in found["datasets"]] == [(0.25, 640), (0.75, 1920)]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("7", 7), ("1_000", 1000), ("1,000", 1000), ("1.5k", 1500), ("2M", 2_000_000), ("3B", 3 * 10**9),
     ("3G", 3 * 10**9), ("1.1T", 1_100_000_000_000), ("2e3", 2000)],
)  # fmt: skip
def test_numbers_of_tokens(prefix, capsys, text, tokens):
    assert answer(capsys, "stats", "d", "--tokens", text)[1]["run"]["tokens"] == tokens


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "megawrap data: to do what?"),
        (["mergee", "d"], "megawrap data mergee: there is no such action"),
        (["inspect"], "megawrap data inspect: name a dataset: its path without .bin and .idx"),
        (["inspect", "d", "--samples", "-1"], "megawrap data inspect: --samples and --sample-tokens are 0 or more"),
        (["inspect", "d", "tokenizer.type=null"], "megawrap data inspect: tokenizer.type=null chooses no tokenizer: "),
        (["verify", "d", "--vocab-size", "0"], "megawrap data verify: --vocab-size 0: a vocabulary has one id or more"),
        (["merge", "d"], "megawrap data merge: -o OUT: what is the merged dataset to be called?"),
        (["split", "d", "e", "--fractions", "1,1"], "megawrap data split: it takes 1 dataset, and there are 2: d e"),
        (["split", "d"], "megawrap data split: --fractions 98,1,1: how is it to be split?"),
        (["split", "d", "--fractions", "1,a"], "megawrap data split: --fractions 1,a: numbers with commas between"),
        (["split", "d", "--fractions", "1,1/0"], "megawrap data split: --fractions 1,1/0: numbers with commas between"),
        (["split", "d", "--fractions", "1,1", "--seed", "-1"], "megawrap data split: --seed -1: a seed is 0 or more"),
        (["stats"], "megawrap data stats: name the datasets, or the run: "),
        (["stats", "d", "--weights", "nan"], "megawrap data stats: --weights nan: numbers with commas between them"),
        (["stats", "d", "--tokens", "3Q"], "megawrap data stats: --tokens 3Q: a number such as 300B, 1.5T or 2e12"),
    ],
)
def test_misuse_is_told(prefix, capsys, words, message):
    code = main(["data", *words, "--json"])
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert code == 2
    assert finding["message"].startswith(message)


def test_help_lists_the_actions(capsys):
    with pytest.raises(SystemExit):
        main(["data", "--help"])
    out = capsys.readouterr().out
    assert [name for name in ("inspect", "verify", "merge", "split", "stats") if f"data {name}  " not in out] == []
    with pytest.raises(SystemExit):
        main(["data", "split", "--help"])
    assert "megawrap data split PREFIX --fractions 98,1,1 [OPTIONS]" in capsys.readouterr().out
