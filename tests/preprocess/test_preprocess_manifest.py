"""The record beside an output, and whether it still stands for what would be made."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest
from preprocess_helpers import SP, lines

import megawrap
from megawrap.errors import ConfigError
from megawrap.preprocess import engine, manifest
from megawrap.preprocess.sample.make import TOKENIZER
from megawrap.preprocess.settings import Settings, TokenizerSettings
from megawrap.preprocess.tokenizers import build

ROWS = [{"text": f"document {number}", "title": f"title {number}"} for number in range(50)]


@pytest.fixture(scope="module")
def made_once(tmp_path_factory) -> Path:
    """A folder with an input and its output."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "in.jsonl").write_bytes(lines(ROWS))
    engine.run(settings_in(folder))
    return folder


def settings_in(folder: Path) -> Settings:
    prefix = str(folder / "out")
    return Settings(input=folder / "in.jsonl", output_prefix=prefix, tokenizer=SP, json_keys=("text", "title"))


@pytest.fixture
def job(made_once, tmp_path) -> Settings:
    """Settings whose output is there."""
    shutil.copytree(made_once, tmp_path, dirs_exist_ok=True)
    return settings_in(tmp_path)


def test_the_manifest_tells_what_was_made_from_what(job):
    data = job.input.read_bytes()
    value = json.loads(manifest.path(job.prefix("title")).read_bytes())
    tokens = Path(f"{job.prefix('title')}.bin").stat().st_size // 2
    assert value == {
        "format": 2,
        "megawrap": megawrap.__version__,
        "engine": value["engine"],
        "origin": {
            "inputs": [{"name": "in.jsonl", "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}],
            "tokenizer_type": "Llama2Tokenizer",
            "tokenizer_sha256": build(SP).fingerprint,
            "vocab_size": 4096,
            "append_eod": False,
        },
        "outputs": [
            {
                "key": "title",
                "dtype": "<u2",
                "documents": 50,
                "sequences": 50,
                "tokens": tokens,
                "blank_lines": 0,
                "rejected_lines": 0,
            }
        ],
        "rejected": {},
    }
    assert value["engine"].startswith(("sentencepiece ", "gigatoken "))


def test_a_complete_output_of_the_same_settings_matches(job):
    made = engine.run(job)
    assert manifest.matches(job) == made
    assert manifest.matches(dataclasses.replace(job, workers=7)) == made, "the number of workers makes no difference"
    copy = job.input.with_name("copy.jsonl")
    copy.write_bytes(job.input.read_bytes())
    assert manifest.matches(dataclasses.replace(job, input=copy)) == made, "nor does the name of the input"
    title = dataclasses.replace(job, json_keys=("title",))
    assert manifest.matches(title) == dataclasses.replace(made, outputs=made.outputs[1:])


def other_model(job: Settings) -> Settings:
    model = job.input.with_name("other.model")
    model.write_bytes(TOKENIZER.read_bytes() + b"\x12\x00")  # protobuf: an empty trainer_spec more
    return dataclasses.replace(job, tokenizer=TokenizerSettings(type="Llama2Tokenizer", model=model))


def same_size_and_time(job: Settings) -> Settings:
    status = job.input.stat()
    job.input.write_bytes(job.input.read_bytes().replace(b"document 7", b"document 8"))
    os.utime(job.input, ns=(status.st_atime_ns, status.st_mtime_ns))
    return job


def without(job: Settings, suffix: str) -> Settings:
    Path(f"{job.prefix('text')}{suffix}").unlink()
    return job


def cut(job: Settings, suffix: str) -> Settings:
    path = Path(f"{job.prefix('title')}{suffix}")
    path.write_bytes(path.read_bytes()[:-2])
    return job


def rewritten(job: Settings, old: bytes, new: bytes) -> Settings:
    path = manifest.path(job.prefix("text"))
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new))
    return job


CHANGES = {
    "another end of documents": lambda job: dataclasses.replace(job, append_eod=True),
    "another tokenizer file": other_model,
    "another tokenizer type": lambda job: dataclasses.replace(
        job, tokenizer=TokenizerSettings(type="SentencePieceTokenizer", model=SP.model)
    ),
    "another prefix": lambda job: dataclasses.replace(job, output_prefix=job.output_prefix + "2"),
    "another key": lambda job: dataclasses.replace(job, json_keys=("text", "body")),
    "longer input": lambda job: job.input.write_bytes(job.input.read_bytes() + lines(["more"])) and job,
    "input of the same size and time": same_size_and_time,
    "no data": lambda job: without(job, ".bin"),
    "no index": lambda job: without(job, ".idx"),
    "no manifest": lambda job: without(job, ".json"),
    "data cut off": lambda job: cut(job, ".bin"),
    "index cut off": lambda job: cut(job, ".idx"),
    "manifest cut off": lambda job: cut(job, ".json"),
    "another format": lambda job: rewritten(job, b'"format": 2', b'"format": 1'),
    "no format": lambda job: rewritten(job, b'"format": 2,', b""),
    "a field too many": lambda job: rewritten(job, b'"format": 2,', b'"format": 2, "more": 1,'),
    "other counts": lambda job: rewritten(job, b'"documents": 50', b'"documents": 51'),
    "not an object": lambda job: manifest.path(job.prefix("text")).write_text("[]") and job,
}


@pytest.mark.parametrize("change", CHANGES)
def test_any_change_ends_the_match(job, change):
    assert manifest.matches(CHANGES[change](job)) is None


def test_outputs_of_two_different_runs_are_no_match(job):
    text = dataclasses.replace(job, json_keys=("text",), append_eod=True)
    engine.run(text)
    assert manifest.matches(text) is not None
    assert manifest.matches(job) is None


def test_a_missing_input_is_an_error(job):
    job.input.unlink()
    with pytest.raises(ConfigError, match=r"there is no such file$"):
        manifest.matches(job)
