"""megawrap tokenizer check and diff: what a person and a program see, and the exit codes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from megawrap.cli import main
from megawrap.preprocess.sample.make import TOKENIZER

sys.path.insert(0, str(Path(__file__).parents[1] / "preprocess"))
import tokenizer_helpers as helpers


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer") / "hf"
    return helpers.with_bos(folder)


def run(capsys, *words) -> tuple[int, str, str]:
    code = main(["tokenizer", *map(str, words)])
    done = capsys.readouterr()
    return code, done.out, done.err


def test_a_wrong_tokenizer_is_named(capsys):
    code, out, err = run(capsys, "check", TOKENIZER, "--family", "llama2")
    assert code == 2 and out == f"Llama2Tokenizer, {engine()}: 4,096 ids, documents end with id 2\n"
    assert "error MW684  not Llama 2: another vocabulary: " in err
    assert "error MW687  not Llama 2: 4,096 ids, and it has 32,000" in err


def engine() -> str:
    import sentencepiece

    return f"sentencepiece {sentencepiece.__version__}"


@pytest.mark.parametrize(
    "words",
    [
        ["tokenizer=llama2", f"tokenizer.model={TOKENIZER}"],
        ["model=llama2_7b", f"tokenizer.model={TOKENIZER}", "tokenizer.type=Llama2Tokenizer"],
        ["tokenizer=sample", "--family=llama2"],
    ],
)
def test_the_family_comes_from_the_words(capsys, words):
    code, out, _ = run(capsys, "check", *words, "--json")
    answer = json.loads(out)
    assert (code, answer["family"], answer["tokenizer"]["vocab_size"]) == (2, "llama2", 4096)
    assert {"MW684", "MW687"} <= {finding["id"] for finding in answer["findings"]}


def test_a_list_of_ids_that_somebody_wrote(capsys):
    words = ("check", "--family", "llama2", "--text", "Hello world!", "--ids")
    code, out, err = run(capsys, *words, "1 15043 3186 29991")
    assert (code, out) == (2, "") and err.rstrip().endswith("and not 1 15043 3186 29991: the first id is BOS")
    code, out, err = run(capsys, *words, "15043,3186,29991")
    assert (code, out, err) == (0, "agrees with Llama 2: 'Hello world!'\n", "")
    code, _, err = run(capsys, "check", TOKENIZER, *words[1:], "1,2")
    assert code == 2 and "'Hello world!' is " in err and "and not 1 2" in err


def test_the_same_tokenizer_twice(capsys, folder):
    code, out, err = run(capsys, "diff", folder, folder / "tokenizer.json")
    assert (code, err) == (0, "") and "texts have the same ids" in out
    count = out.splitlines()[-1].split()
    assert count[0] == count[2] and int(count[0]) > 100


def test_two_tokenizers_differ(capsys, folder):
    code, out, err = run(capsys, "diff", folder, "tokenizer=sample", "--text", "one two", "--text", "")
    assert code == 2 and "1 of 2 texts have the same ids" in out and "\n'one two'\n  A  from id 0: " in out
    assert "error MW690  around every text: id 1200 before in the first, nothing in the second" in err
    code, out, _ = run(capsys, "diff", folder, "tokenizer=sample", "--text", "one two", "--json")
    answer = json.loads(out)
    assert code == 2 and answer["vocab_sizes"] == [1202, 4096] and answer["differing"] == 1
    assert answer["differences"][0]["text"] == "one two" and answer["findings"]


def test_lines_of_a_file_are_texts(capsys, folder, tmp_path):
    file = tmp_path / "texts"
    file.write_text('{"text": "in JSON"}\nplain\n{"other": 1}\n{broken', encoding="utf-8")
    _, out, _ = run(capsys, "diff", folder, folder, "--file", file, "--json")
    assert json.loads(out)["texts"] == 4
    code, _, err = run(capsys, "diff", folder, folder, "--file", tmp_path / "none")
    assert code == 2 and "none cannot be read: No such file or directory" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["check"], "MW680  which family is it to be?"),
        (["check", "--family", "lama2"], "MW680  there are no golden vectors of lama2"),
        (["check", "model=mixtral_8x7b"], "MW680  there are no golden vectors of mixtral"),
        (["check", "--family", "llama2"], "which tokenizer?"),
        (["check", "--family", "llama2", "--ids", "1"], "--text and --ids go together"),
        (["check", "--family", "llama2", "--text", "x", "--ids", "1"], "Llama 2 has no vector of 'x'"),
        (["check", "--family", "llama2", "--text", "3", "--ids", "one"], "--ids one: numbers with commas"),
        (["check", "a", "b", "--family", "llama2"], "is one tokenizer, and there are more: a b"),
        (["check", "no_such_file", "--family", "llama2"], "MW612  no_such_file: there is no such file or folder"),
        (["diff", "a"], "it compares two, and there are 1"),
        (["diff", "tokenizer.model=x", "b"], "tokenizer.model=x chooses no tokenizer"),
        (["diff", "a", "b", "--limit", "0"], "--limit 0: it is 1 or more"),
    ],
)
def test_misuse_is_told(capsys, words, message):
    code, _, err = run(capsys, *words)
    assert code == 2 and message in err


def test_files_are_told_by_their_names(tmp_path):
    from megawrap.cli.verbs.tokenizer_words import by_path

    for name in ("vocab.json", "merges.txt"):
        (tmp_path / name).touch()
    assert by_path(tmp_path).type == "GPT2BPETokenizer"
    (tmp_path / "merges.txt").unlink()
    (tmp_path / "vocab.txt").touch()
    assert by_path(tmp_path).type == "BertWordPieceLowerCase" == by_path(tmp_path / "vocab.txt").type
    (tmp_path / "vocab.txt").unlink()
    (tmp_path / "tokenizer.model").touch()
    assert by_path(tmp_path).model == tmp_path / "tokenizer.model"
    (tmp_path / "tokenizer.json").touch()
    assert by_path(tmp_path).type == "HuggingFaceTokenizer" == by_path(Path("org/name")).type
    assert by_path(Path("tokenizer.model.v3")).type == "Llama2Tokenizer"
