"""Byte identity with Megatron: its IndexedDatasetBuilder and reader, and its own tool from checkouts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from preprocess_helpers import EOD, NASTY, lines, tokenized, written

from megawrap.preprocess import engine
from megawrap.preprocess.sample.make import TOKENIZER
from megawrap.preprocess.settings import Settings, TokenizerSettings

TEXTS = [*NASTY, [], ["a", "", "b"], ["", ""], "last"]
NUMBERS = ["1 2 3", ["4", "5 6"], [], "7"]


@pytest.fixture(scope="module")
def indexed_dataset() -> Any:
    """Megatron's own module."""
    return pytest.importorskip("megatron.core.datasets.indexed_dataset", reason="megatron-core is not installed")


def as_numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(" ")]


@pytest.mark.parametrize("append_eod", [False, True])
@pytest.mark.parametrize("vocab_size", [0, 100, 70_000])
def test_the_files_are_those_of_megatrons_builder(
    settings, tmp_path, indexed_dataset, processor, vocab_size, append_eod
):
    if vocab_size:
        tokenizer = TokenizerSettings(type="NullTokenizer", vocab_size=vocab_size)
        job = settings(NUMBERS, tokenizer=tokenizer, append_eod=append_eod)
        documents = tokenized(NUMBERS, as_numbers, vocab_size - 1 if append_eod else None)
    else:
        job = settings(TEXTS, append_eod=append_eod)
        documents = tokenized(TEXTS, processor.encode_as_ids, EOD if append_eod else None)
    dtype = indexed_dataset.DType.optimal_dtype(vocab_size or 4096)
    builder = indexed_dataset.IndexedDatasetBuilder(str(tmp_path / "theirs.bin"), dtype=dtype)
    for document in documents:
        builder.add_document([id for ids in document for id in ids], list(map(len, document)))
    builder.finalize(str(tmp_path / "theirs.idx"))
    engine.run(job)
    assert written(job.prefix("text")) == written(str(tmp_path / "theirs"))


def test_megatron_reads_what_we_write(settings, indexed_dataset, sample_lines, processor):
    job = settings(b"".join(sample_lines), append_eod=True)
    engine.run(job)
    dataset = indexed_dataset.IndexedDataset(job.prefix("text"))
    assert len(dataset) == len(sample_lines)
    for line, ids in zip(sample_lines, dataset, strict=False):
        assert ids.tolist() == [*processor.encode_as_ids(json.loads(line)["text"]), EOD]


def checkouts() -> list[Path]:
    """Folders of Megatron-LM under MEGAWRAP_CHECKOUTS (or itself), whose tool has the tokenizers of megatron.core."""
    folder = Path(os.environ.get("MEGAWRAP_CHECKOUTS", "/nowhere"))
    tools = [*folder.glob("tools/preprocess_data.py"), *sorted(folder.glob("*/tools/preprocess_data.py"))]
    return [tool.parents[1] for tool in tools if "megatron.core.tokenizers" in tool.read_text()]


@pytest.mark.skipif(not checkouts(), reason="MEGAWRAP_CHECKOUTS names no folder with Megatron-LM checkouts")
@pytest.mark.parametrize("checkout", checkouts(), ids=lambda path: path.name)
@pytest.mark.parametrize("append_eod", [False, True])
def test_the_files_are_those_of_megatrons_tool(settings, tmp_path, sample_lines, checkout, append_eod):
    job = settings(b"".join(sample_lines[:100]) + lines(TEXTS), append_eod=append_eod, workers=2)
    pytest.importorskip("torch", reason="Megatron's tool needs torch")
    _megatrons_tool(checkout, job, str(tmp_path / "theirs"))
    engine.run(job)
    assert written(job.prefix("text")) == written(f"{tmp_path}/theirs_text_document")


def _megatrons_tool(checkout: Path, job: Settings, prefix: str) -> None:
    words = ["--input", str(job.input), "--output-prefix", prefix, "--tokenizer-type", job.tokenizer.type]
    words += ["--tokenizer-model", str(TOKENIZER), "--workers", "1", *(["--append-eod"] if job.append_eod else [])]
    command = [sys.executable, "tools/preprocess_data.py", *words]
    # The checkout's own megatron, not an installed one. A broken run of this tool may wait for ever.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(checkout), os.environ.get("PYTHONPATH", "")])}
    options: dict[str, Any] = {"env": environment, "timeout": 600, "capture_output": True, "text": True}
    done = subprocess.run(command, cwd=checkout, check=False, **options)
    if "ModuleNotFoundError" in done.stderr:
        pytest.skip(f"{checkout.name}: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
