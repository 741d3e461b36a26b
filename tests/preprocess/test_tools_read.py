"""Inspect, verify and stats: numbers against plain Python."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from preprocess_helpers import SP
from tools_helpers import make, some_documents

from megawrap.errors import ConfigError
from megawrap.preprocess.tokenizers import build
from megawrap.preprocess.tools import inspect as inspecting
from megawrap.preprocess.tools.histogram import Histogram
from megawrap.preprocess.tools.inspect import inspect
from megawrap.preprocess.tools.names import prefixes
from megawrap.preprocess.tools.stats import Run, stats
from megawrap.preprocess.tools.verify import total_bytes, verify


@pytest.mark.parametrize("seed", range(10))
def test_a_dataset_in_numbers(tmp_path, monkeypatch, seed):
    monkeypatch.setattr(inspecting, "_BLOCK", 7)
    documents = some_documents(seed, random.Random(seed).randrange(1, 80))
    found = inspect(make(tmp_path / "d", documents), samples=0)
    lengths = sorted(sum(map(len, document)) for document in documents)
    assert (found.documents, found.sequences) == (len(documents), sum(map(len, documents)))
    assert (found.tokens, found.dtype, found.bin_bytes) == (sum(lengths), "uint16", 2 * sum(lengths))
    assert (found.shortest, found.longest, found.mean) == (lengths[0], lengths[-1], sum(lengths) / len(lengths))
    assert found.empty_documents == lengths.count(0)
    for share, length in found.quantiles:
        assert length == lengths[max(1, int(np.ceil(share * len(lengths)))) - 1]
    assert sum(one.documents for one in found.histogram) == len(lengths)
    for one in found.histogram:
        inside = [length for length in lengths if one.shortest <= length <= one.longest]
        assert (one.documents, one.tokens) == (len(inside), sum(inside))


def test_long_documents_are_counted_to_a_part_in_two_thousand():
    rng = np.random.default_rng(3)
    lengths = np.sort((2 ** rng.uniform(0, 50, 5000)).astype(np.int64))
    found = Histogram()
    for block in np.array_split(rng.permutation(lengths), 7):
        found.add(block)
    assert (found.shortest, found.longest, found.tokens) == (lengths[0], lengths[-1], lengths.sum())
    for share in (0.001, 0.1, 0.5, 0.9, 0.999, 1.0):
        exact = int(lengths[int(np.ceil(share * 5000)) - 1])
        assert exact * (1 - 1 / 2048) <= found.quantile(share) <= exact
    for one in found.bins():
        inside = lengths[(lengths >= one.shortest) & (lengths <= one.longest)]
        assert (one.documents, one.tokens) == (len(inside), inside.sum())


def test_the_edges_of_the_bins():
    edges = [0, 1, 2, 3, 4, 4095, 4096, 4097, 8191, 8192, 2**40 - 1, 2**40]
    for length in edges:
        found = Histogram()
        found.add(np.array([length]))
        assert found.quantile(0.5) <= length <= found.quantile(0.5) * (1 + 1 / 2047)
        (only,) = found.bins()
        assert only.shortest <= length <= only.longest


def test_an_empty_dataset_can_be_looked_at(tmp_path):
    found = inspect(make(tmp_path / "d", []))
    assert (found.documents, found.tokens, found.histogram, found.samples) == (0, 0, (), ())
    assert (found.shortest, found.longest, found.mean, found.quantiles[1]) == (0, 0, 0.0, (0.5, 0))


def test_samples_are_spread_and_decoded(tmp_path):
    tokenizer = build(SP)
    texts = ["one two", "three", "four", "five", "six seven eight nine ten"]
    ids = [tokenizer.encode_batch([text]).ids.tolist() for text in texts]
    prefix = make(tmp_path / "d", [[one, [2]] for one in ids])
    found = inspect(prefix, samples=3, sample_tokens=4, tokenizer=tokenizer).samples
    assert [one.document for one in found] == [0, 2, 4]
    assert [(one.tokens, one.sequences, one.last) for one in found] == [(len(ids[at]) + 1, 2, 2) for at in (0, 2, 4)]
    assert found[2].ids == tuple(ids[4][:4])
    assert found[2].text == tokenizer.decode(ids[4][:4])
    assert inspect(prefix, samples=9).samples[-1].text is None
    assert len(inspect(prefix, samples=9).samples) == 5


def test_ids_that_are_none_of_the_tokenizer_have_no_text(tmp_path):
    prefix = make(tmp_path / "d", [[[60_000]]])
    assert inspect(prefix, tokenizer=build(SP)).samples[0].text is None


def test_a_broken_dataset_is_not_described(tmp_path):
    prefix = make(tmp_path / "d", [[[1, 2]]])
    Path(f"{prefix}.bin").write_bytes(b"1")
    with pytest.raises(ConfigError, match="1 bytes, and its index describes 4"):
        inspect(prefix)


def test_a_verdict(tmp_path):
    prefix = make(tmp_path / "d", [[[1, 2], [7]], [[9]]])
    found = verify(prefix, deep=True, vocab_size=10)
    assert (found.documents, found.sequences, found.tokens, found.dtype) == (2, 3, 4, "uint16")
    assert (found.checked_ids, found.vocab_size, found.highest_id, found.findings) == (True, 10, 9, ())
    assert found.is_sound
    shallow = verify(prefix)
    assert (shallow.checked_ids, shallow.highest_id, shallow.is_sound) == (False, None, True)
    outside = verify(prefix, deep=True, vocab_size=9)
    assert [finding.id for finding in outside.findings] == ["MW660"]
    assert not outside.is_sound


def test_the_vocabulary_is_that_of_the_manifest_unless_another_is_given(tmp_path):
    prefix = make(tmp_path / "d", [[[1, 9]]])
    (unknown,) = verify(prefix, deep=True).findings
    assert (unknown.id, unknown.severity) == ("MW667", "warning")
    Path(f"{prefix}.json").write_text(json.dumps({"origin": {"vocab_size": 9}}))
    assert [finding.id for finding in verify(prefix, deep=True).findings] == ["MW660"]
    assert verify(prefix, deep=True, vocab_size=10).is_sound


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"origin": null}', '{"origin": [1]}'])
def test_a_manifest_that_cannot_be_read_says_nothing(tmp_path, text):
    prefix = make(tmp_path / "d", [[[1, 9]]])
    Path(f"{prefix}.json").write_text(text)
    assert [finding.id for finding in verify(prefix, deep=True).findings] == ["MW667"]


def test_what_is_broken_is_not_looked_into(tmp_path):
    prefix = make(tmp_path / "d", [[[1, 9]]])
    Path(f"{prefix}.bin").write_bytes(bytes(6))
    found = verify(prefix, deep=True, vocab_size=5)
    assert ([one.id for one in found.findings], found.tokens, found.checked_ids) == (["MW643"], None, False)
    assert verify(str(tmp_path / "e")).findings[0].id == "MW640"
    Path(f"{prefix}.idx").write_bytes(b"")
    assert (verify(prefix).documents, verify(prefix).findings[0].id) == (None, "MW641")


def test_how_far_verify_is_adds_up(tmp_path):
    prefix = make(tmp_path / "d", [[[1, 2], [3]]] * 100)
    told: list[int] = []
    verify(prefix, deep=True, vocab_size=10, advance=told.append)
    assert sum(told) == total_bytes([prefix], deep=True) - 34


def peak(code: str, *words: str) -> int:
    """Peak memory of a Python process in kB: of its own, where getrusage begins with that of its parent."""
    script = f"{code}\nprint(*[line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')])"
    return int(
        subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=True).stdout
    )


@pytest.mark.parametrize(
    "code",
    [
        "from megawrap.preprocess.tools.verify import verify; verify(P, deep=True)",
        "from megawrap.preprocess.tools.inspect import inspect; inspect(P, samples=1)",
        "from megawrap.preprocess.tools.merge import merge; merge([P], P + 'out')",
        "from megawrap.preprocess.tools.split import split; split(P, [1, 1], P + 'out', seed=1)",
    ],
)
def test_memory_does_not_grow_with_the_dataset(tmp_path, code):
    """A hundred times the data, in less memory more than it has."""
    peaks = []
    for name, count in (("small", 4_000), ("large", 400_000)):
        lengths = np.full(count, 80, dtype="<i4")
        Path(tmp_path / f"{name}.bin").write_bytes(bytes(160 * count))
        index = np.arange(count + 1, dtype="<i8")
        head = (
            b"MMIDIDX\x00\x00"
            + np.array([1], "<u8").tobytes()
            + b"\x08"
            + np.array([count, count + 1], "<u8").tobytes()
        )
        parts = (head, lengths.tobytes(), (index[:-1] * 160).tobytes(), index.tobytes())
        Path(tmp_path / f"{name}.idx").write_bytes(b"".join(parts))
        peaks.append(peak(f"import sys; P = sys.argv[1]; {code}", str(tmp_path / name)))
    # 72 MB of files; of strata and blocks, only the large one fills some.
    assert peaks[1] - peaks[0] < 32_000


def three(folder: Path) -> list[str]:
    """Datasets of 100, 300 and 600 tokens."""
    return [make(folder / f"d{size}", [[[1] * 10]] * (size // 10)) for size in (100, 300, 600)]


def test_without_weights_sizes_decide_and_each_is_seen_once(tmp_path):
    found = stats(three(tmp_path), run=Run(500))
    assert [(one.tokens, one.weight, one.drawn, one.epochs) for one in found.shares] == [
        (100, 0.1, 50, 0.5),
        (300, 0.3, 150, 0.5),
        (600, 0.6, 300, 0.5),
    ]
    assert found.findings == ()
    more = stats(three(tmp_path), run=Run(5000))
    assert [(one.drawn, one.epochs) for one in more.shares] == [(100, 1), (300, 1), (600, 1)]
    assert [finding.id for finding in more.findings] == ["MW669"]


def test_weights_decide_how_often_each_is_seen(tmp_path):
    found = stats(three(tmp_path), weights=[1, 1, 2], run=Run(2000))
    assert [(one.weight, one.drawn, one.epochs) for one in found.shares] == [
        (0.25, 500, 5.0),
        (0.25, 500, 500 / 300),
        (0.5, 1000, 1000 / 600),
    ]


def test_a_run_takes_whole_samples(tmp_path):
    found = stats(three(tmp_path), weights=[1, 1, 1], run=Run(10 * 64, 64))
    assert [one.drawn for one in found.shares] == [4 * 64] * 3  # ceil(10 / 3)


def test_a_single_dataset_is_repeated(tmp_path):
    (share,) = stats(three(tmp_path)[:1], run=Run(1000)).shares
    assert (share.weight, share.drawn, share.epochs) == (1.0, 1000, 10.0)


def test_what_is_kept_for_validation_is_not_trained_on(tmp_path):
    found = stats(three(tmp_path), split=[90, 5, 5])
    assert [one.training_tokens for one in found.shares] == [90, 270, 540]
    assert [one.epochs for one in found.shares] == [None] * 3
    nothing = stats(three(tmp_path), split=[0, 5, 5])
    assert [finding.id for finding in nothing.findings] == ["MW669"] * 3


def test_wrong_weights_are_told_with_what_is_broken(tmp_path):
    there = three(tmp_path)
    with pytest.raises(ConfigError) as failed:
        stats([there[0], str(tmp_path / "d30")], weights=[1])
    assert [finding.id for finding in failed.value.findings] == ["MW668", "MW640"]
    assert failed.value.findings[1].nearest[0] == str(tmp_path / "d300")
    for weights in ([-1, 2], [0, 0]):
        with pytest.raises(ConfigError, match="none can be negative, and one has to be more than 0"):
            stats(there[:2], weights=weights)


def test_files_stand_for_their_dataset():
    assert prefixes(["a.bin", "a.idx", "b", "c.idx", "d.json"]) == ["a", "b", "c", "d.json"]
    assert prefixes(["a", "a"]) == ["a", "a"]
