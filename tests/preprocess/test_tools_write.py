"""Merge and split: what is read back, what is refused, what is left after a failure."""

from __future__ import annotations

import errno
import itertools
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from preprocess_helpers import ROOT, names
from tools_helpers import make, read, some_documents

from megawrap.errors import ConfigError, RunError, errors
from megawrap.preprocess.indexed.verify import verify
from megawrap.preprocess.tools import copying, draft
from megawrap.preprocess.tools import merge as merging
from megawrap.preprocess.tools import split as splitting
from megawrap.preprocess.tools.assign import Assigner, quotas
from megawrap.preprocess.tools.merge import merge
from megawrap.preprocess.tools.split import part_names, split

THIRDS = [Fraction(1)] * 3


def shards(folder: Path, seed: int, code: int = 8, count: int = 4) -> tuple[list[str], list[Any]]:
    """Some datasets, one of them empty, and all of their documents."""
    rng = random.Random(seed)
    parts = [some_documents(rng.randrange(1 << 30), rng.randrange(1, 60)) for _ in range(count - 1)] + [[]]
    rng.shuffle(parts)
    prefixes = [make(folder / f"s{number}", part, code) for number, part in enumerate(parts)]
    return prefixes, [document for part in parts for document in part]


@pytest.mark.parametrize("seed", range(20))
def test_a_merged_dataset_is_its_parts_behind_each_other(tmp_path, seed):
    code = 4 if seed % 2 else 8
    prefixes, documents = shards(tmp_path, seed, code)
    made = merge(prefixes, str(tmp_path / "out"))
    assert read(str(tmp_path / "out")) == documents
    make(tmp_path / "expected", documents, code)
    for suffix in (".bin", ".idx"):
        assert (tmp_path / f"out{suffix}").read_bytes() == (tmp_path / f"expected{suffix}").read_bytes()
    tokens = sum(len(ids) for document in documents for ids in document)
    assert (made.documents, made.sequences, made.tokens) == (len(documents), sum(map(len, documents)), tokens)
    assert [name for name in names(tmp_path) if "partial" in name] == []


@pytest.mark.parametrize("seed", [None, *range(10)])
@pytest.mark.parametrize("stratum", [7, 1 << 16])
def test_a_split_dataset_has_every_document_once_and_in_order(tmp_path, monkeypatch, seed, stratum):
    monkeypatch.setattr(splitting, "STRATUM", stratum)
    monkeypatch.setattr(draft, "_LONG", 60)
    documents = some_documents(seed or 0, 100)
    # A token of its own at the start of each tells where it came from.
    documents = [[[number, *ids] for ids in (document or [[]])] for number, document in enumerate(documents)]
    prefix = make(tmp_path / "d", documents)
    made = split(prefix, [Fraction(8), Fraction("1.5"), Fraction("0.5")], prefix, seed=seed)
    assert [one.prefix for one in made] == [f"{prefix}_train", f"{prefix}_valid", f"{prefix}_test"]
    assert [one.documents for one in made] == [80, 15, 5]
    parts = [read(one.prefix) for one in made]
    assert sorted(itertools.chain(*parts)) == documents
    assert all(part == sorted(part) for part in parts)
    is_contiguous = list(itertools.chain(*parts)) == documents
    assert is_contiguous == (seed is None)
    assert [errors(verify(one.prefix)) for one in made] == [[], [], []]


def test_the_same_seed_gives_the_same_parts_whatever_numpy_is_installed(tmp_path):
    prefix = make(tmp_path / "d", [[[number]] for number in range(12)])
    for output in ("a", "b"):
        split(prefix, THIRDS, str(tmp_path / output), seed=5)
    for name in part_names(3):
        assert read(str(tmp_path / f"a_{name}")) == read(str(tmp_path / f"b_{name}"))
    # From the raw numbers of PCG64, which numpy keeps as they are.
    raw = np.random.PCG64(5)
    raw.random_raw()
    order = np.argsort(raw.random_raw(12), kind="stable")
    expected = [[[[int(at)]] for at in range(12) if order[at] // 4 == part] for part in range(3)]
    assert [read(str(tmp_path / f"a_{name}")) for name in part_names(3)] == expected


@pytest.mark.parametrize("seed", range(30))
def test_parts_have_their_quota_and_every_document_the_same_chance(seed):
    rng = random.Random(seed)
    shares = [Fraction(rng.randrange(1, 100)) for _ in range(rng.randrange(2, 6))]
    count = rng.randrange(1, 500)
    wanted = quotas(shares, count)
    assert sum(wanted) == count
    running = itertools.accumulate(shares)
    assert all(
        abs(sum(wanted[: at + 1]) - one / sum(shares) * count) <= Fraction(1, 2) for at, one in enumerate(running)
    )
    parts, left, dealt = Assigner(wanted, seed), count, []
    while left:
        block = min(left, rng.randrange(1, 40))
        dealt.append(parts.next(block))
        left -= block
    assert np.bincount(np.concatenate(dealt), minlength=len(shares)).tolist() == wanted


def test_a_small_part_can_come_from_anywhere():
    """One document of a thousand, dealt in blocks of ten: each block has its chance."""
    found = set()
    for seed in range(300):
        parts = Assigner([999, 1], seed)
        labels = np.concatenate([parts.next(10) for _ in range(100)])
        found.add(int(np.flatnonzero(labels)[0]))
    assert len({at // 10 for at in found}) > 80
    assert len({at % 10 for at in found}) == 10


def test_modes_go_with_their_sequences(tmp_path):
    a = make(tmp_path / "a", [[[1], [2]], [[3]]], modes=b"\0\1\2")
    b = make(tmp_path / "b", [[[4]], [[5], [6]]], modes=b"\3\4\5")
    merge([a, b], str(tmp_path / "out"))
    assert (tmp_path / "out.idx").read_bytes().endswith(bytes(range(6)))
    assert verify(str(tmp_path / "out")) == []
    split(str(tmp_path / "out"), [Fraction(1), Fraction(1)], str(tmp_path / "p"))
    assert (tmp_path / "p_valid.idx").read_bytes().endswith(b"\3\4\5")
    assert (read(str(tmp_path / "p_valid")), verify(str(tmp_path / "p_valid"))) == ([[[4]], [[5], [6]]], [])


def told(call: Any, *words: Any, **options: Any) -> list[tuple[str, str]]:
    with pytest.raises(ConfigError) as failed:
        call(*words, **options)
    return [(finding.id, finding.message) for finding in failed.value.findings]


def test_what_does_not_fit_together_is_refused(tmp_path):
    a, b = make(tmp_path / "a", [[[1]]]), make(tmp_path / "b", [[[1]]], 4)
    c, out = make(tmp_path / "c", [[[1]]], modes=b"\0"), str(tmp_path / "out")
    assert told(merge, [a, b, c], out) == [
        ("MW662", f"{a} stores ids as uint16, and {b} as int32: they do not merge"),
        ("MW662", f"{c} is multimodal, and {a} is not: they do not merge"),
    ]
    assert [id for id, _ in told(merge, [a, a], out)] == ["MW662"]
    assert told(merge, [a], f"{tmp_path}/./a") == [
        ("MW661", f"--output {tmp_path}/./a: it is read, so it cannot be written")
    ]
    assert [id for id, _ in told(merge, [a], f"{out}.bin")] == ["MW661"]
    assert told(merge, [a], f"{a}.bin/x")[-1] == ("MW620", f"--output {a}.bin/x: {a}.bin is not a folder")
    assert names(tmp_path) == ["a.bin", "a.idx", "b.bin", "b.idx", "c.bin", "c.idx"]


def test_all_broken_shards_are_told_at_once(tmp_path):
    a, b = make(tmp_path / "first", [[[1]]]), make(tmp_path / "bees", [[[1]]])
    Path(f"{a}.bin").write_bytes(b"")
    found = told(merge, [a, str(tmp_path / "beas"), b], str(tmp_path / "out"))
    assert [id for id, _ in found] == ["MW643", "MW640"]
    with pytest.raises(ConfigError) as failed:
        merge([str(tmp_path / "beas")], str(tmp_path / "out"))
    assert failed.value.findings[0].nearest == (b,)


def test_datasets_of_different_tokenizers_do_not_merge_unasked(tmp_path):
    prefixes = [make(tmp_path / name, [[[1]]]) for name in "abc"]
    for prefix, sha, eod in zip(prefixes, ("1", "2", "1"), (True, True, True), strict=True):
        origin = {"tokenizer_type": "T", "tokenizer_sha256": sha, "vocab_size": 9, "append_eod": eod, "more": 1}
        Path(f"{prefix}.json").write_text(json.dumps({"format": 1, "origin": origin}))
    a, b, c = prefixes
    message = f"{a} and {b} were made by different tokenizers (their .json say so)"
    assert told(merge, [a, b, c], str(tmp_path / "out")) == [("MW663", message)]
    merge([a, b, c], str(tmp_path / "out"), mixed_allowed=True)
    kept = json.loads((tmp_path / "out.json").read_text())["origin"]
    assert kept == {"tokenizer_type": "T", "tokenizer_sha256": None, "vocab_size": 9, "append_eod": True}
    # What is not known contradicts nothing, and what was merged or split remembers.
    merge([a, c], str(tmp_path / "more"))
    Path(f"{c}.json").unlink()
    merge([b, c], str(tmp_path / "unknown"))
    split(str(tmp_path / "more"), THIRDS[:2], str(tmp_path / "p"))
    made = [str(tmp_path / "p_train"), str(tmp_path / "p_valid")]
    merge(made, str(tmp_path / "again"))
    assert [id for id, _ in told(merge, [b, *made], str(tmp_path / "x"))] == ["MW663"]


def test_what_is_there_is_replaced_only_if_asked(tmp_path):
    a, b = make(tmp_path / "a", [[[1]]]), make(tmp_path / "b", [[[2]]])
    out = str(tmp_path / "out")
    merge([a], out)
    assert told(merge, [b], out) == [("MW661", f"--output {out}: it is there already")]
    assert read(out) == [[[1]]]
    merge([b], out, overwrite=True)
    assert read(out) == [[[2]]]


def test_what_cannot_be_split_is_refused(tmp_path):
    prefix = make(tmp_path / "d", [[[1]], [[2]], [[3]]])
    out = str(tmp_path / "p")
    shares = [Fraction(98), Fraction(1), Fraction(1)]
    nothing = [("MW666", f"{out}_{name} would get none of {prefix}'s 3 documents") for name in ("valid", "test")]
    assert told(split, prefix, shares, out) == nothing
    assert [id for id, _ in told(split, prefix, shares[:1], out)] == ["MW666"]
    assert [id for id, _ in told(split, prefix, [Fraction(1), Fraction(0)], out)] == ["MW666"]
    assert [id for id, _ in told(split, prefix, THIRDS, out, names=["a", "b"])] == ["MW666"]
    assert [id for id, _ in told(split, prefix, THIRDS, out, names=["a", "b", "a"])] == ["MW666"]
    split(prefix, THIRDS, out, names=["a", "b", "c"])
    assert read(f"{out}_b") == [[[2]]]
    assert [name for name in names(tmp_path) if name.endswith(".idx")] == ["d.idx", "p_a.idx", "p_b.idx", "p_c.idx"]


def test_no_room_is_told_before_anything_is_written(tmp_path, monkeypatch):
    prefix = make(tmp_path / "d", [[[1]], [[2]]])
    usage = type("Usage", (), {"free": 10})
    monkeypatch.setattr(draft.shutil, "disk_usage", lambda _: usage)
    message = f"{tmp_path}/out takes 86 bytes, and {tmp_path} has 10 left"
    assert told(merge, [prefix], str(tmp_path / "out")) == [("MW664", message)]
    assert [id for id, _ in told(split, prefix, THIRDS[:2], str(tmp_path / "out"))] == ["MW664"]
    assert names(tmp_path) == ["d.bin", "d.idx"]


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, None])
def test_where_the_kernel_cannot_copy_the_bytes_go_through_memory(tmp_path, monkeypatch, code):
    def refuse(*_: object) -> int:
        if code is None:
            return 0  # what some virtual file systems say
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(copying.os, "copy_file_range", refuse)
    prefixes, documents = shards(tmp_path, 7)
    merge(prefixes, str(tmp_path / "out"))
    assert read(str(tmp_path / "out")) == documents


def test_a_source_that_ends_early_is_an_error(tmp_path):
    (tmp_path / "a").write_bytes(b"12345")
    with (
        (tmp_path / "a").open("rb") as source,
        (tmp_path / "b").open("wb") as target,
        pytest.raises(OSError, match="became shorter"),
    ):
        copying.append(source.fileno(), target.fileno(), 2, 4, lambda _: None)


@pytest.mark.parametrize("call", ["merge", "split"])
def test_a_dataset_that_changes_meanwhile_is_not_used(tmp_path, call):
    prefix = make(tmp_path / "d", some_documents(1, 50))

    def touch(_: int) -> None:
        os.utime(f"{prefix}.bin", ns=(0, time.time_ns() + 10**9))
        calls.append(1)

    calls: list[int] = []
    with pytest.raises(RunError, match=f"^{prefix} changed while it was read; nothing was written$"):
        if call == "merge":
            # The first two reports are of the check, before the files are opened.
            merge([prefix], str(tmp_path / "out"), advance=touch)
        else:
            split(prefix, THIRDS, str(tmp_path / "out"), advance=touch)
    assert names(tmp_path) == ["d.bin", "d.idx"]


def test_an_error_of_the_disk_leaves_nothing(tmp_path, monkeypatch):
    prefix = make(tmp_path / "d", some_documents(1, 50))

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(draft, "write_index", full)
    message = "out cannot be made: No space left on device; nothing is left of it$"
    with pytest.raises(RunError, match=message):
        merge([prefix], str(tmp_path / "out"))
    with pytest.raises(RunError, match=message):
        split(prefix, THIRDS, str(tmp_path / "out"))
    assert names(tmp_path) == ["d.bin", "d.idx"]


@pytest.mark.parametrize("moved", range(9))
def test_an_interruption_while_files_are_moved_leaves_nothing(tmp_path, monkeypatch, moved):
    prefix = make(tmp_path / "d", [[[1]], [[2]], [[3]]])
    rename, count = Path.rename, itertools.count()

    def interrupted(path: Path, target: Path) -> Path:
        if next(count) == moved:
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        split(prefix, THIRDS, str(tmp_path / "out"))
    assert names(tmp_path) == ["d.bin", "d.idx"]


CASES = {
    "merge": ["merge", "d", "e", "-o", "out"],
    "split": ["split", "d", "--fractions", "5,4,1", "-o", "out"],
    "draw": ["split", "d", "--fractions", "5,4,1", "-o", "out", "--seed", "1"],
}


def large(folder: Path) -> None:
    """Two datasets of 2,000 documents and 800 kB."""
    documents = [[[7] * 200]] * 2000
    make(folder / "d", documents)
    make(folder / "e", documents)


def limit_file_size() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))


@pytest.mark.parametrize("words", CASES.values(), ids=CASES)
def test_a_write_that_fails_leaves_nothing(tmp_path, words):
    large(tmp_path)
    command = [sys.executable, "-m", "megawrap", "data", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120,
        preexec_fn=limit_file_size,
    )  # fmt: skip
    message = "error MW622  out cannot be made: File too large; nothing is left of it\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message)
    assert names(tmp_path) == ["d.bin", "d.idx", "e.bin", "e.idx"]


SLOW = """
import sys, time
from megawrap.cli.app import main
from megawrap.preprocess.tools import draft
def wait(*_, **__):
    print("waiting", flush=True)
    time.sleep(60)
draft.write_index = wait
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("words", CASES.values(), ids=CASES)
def test_a_signal_leaves_nothing(tmp_path, words, number):
    large(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, "data", *words], cwd=tmp_path, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    assert any("partial" in name for name in names(tmp_path))
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert "Traceback" not in error
    assert names(tmp_path) == ["d.bin", "d.idx", "e.bin", "e.idx"]


def test_how_far_it_is_adds_up(tmp_path):
    documents = [[[1, 2]], [[3]], [[4, 5, 6], [7]]]
    a, b = make(tmp_path / "a", documents), make(tmp_path / "b", documents)
    told_of: list[int] = []
    merge([a, b], str(tmp_path / "out"), advance=told_of.append)
    # Headers, the offsets on the second reading, and the first boundary are not counted.
    assert 0.5 < sum(told_of) / merging.total_bytes([a, b]) <= 1
    told_of.clear()
    split(a, THIRDS, str(tmp_path / "p"), advance=told_of.append)
    assert 0.5 < sum(told_of) / splitting.total_bytes(a) <= 1
