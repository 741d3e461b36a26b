"""What merge and split write, read back by Megatron; and its own merging against ours."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tools_helpers import make, some_documents

from megawrap.errors import errors
from megawrap.preprocess.indexed.verify import EMPTY, verify
from megawrap.preprocess.tools.merge import merge
from megawrap.preprocess.tools.split import split

pytestmark = pytest.mark.train


@pytest.fixture(scope="module")
def megatron() -> Any:
    """Megatron's own module."""
    return pytest.importorskip("megatron.core.datasets.indexed_dataset", reason="megatron-core is not installed")


def by_megatron(module: Any, prefix: str, **options: Any) -> list[list[list[int]]]:
    """All documents as Megatron reads them."""
    dataset = module.IndexedDataset(prefix, **options)
    bounds = [int(bound) for bound in dataset.document_indices]
    return [[dataset[at].tolist() for at in range(*pair)] for pair in itertools.pairwise(bounds)]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("code", [4, 8])
def test_documents_survive_merging_and_splitting(tmp_path, megatron, seed, code):
    rng = random.Random(seed)
    parts = [[*some_documents(rng.randrange(1 << 30), rng.randrange(1, 40)), [[1, 2]]] for _ in range(3)]
    shards = [make(tmp_path / f"s{number}", part, code) for number, part in enumerate(parts)]
    documents = [document for part in parts for document in part]
    merge(shards, str(tmp_path / "out"))
    assert by_megatron(megatron, str(tmp_path / "out")) == documents
    made = split(str(tmp_path / "out"), [Fraction(1)] * 2, str(tmp_path / "p"), seed=seed if seed % 2 else None)
    read = [by_megatron(megatron, one.prefix) for one in made]
    assert sorted(read[0] + read[1]) == sorted(documents)
    assert seed % 2 or read[0] + read[1] == documents


def test_the_bytes_of_a_merged_dataset_are_those_of_megatrons_builder(tmp_path, megatron):
    parts = [some_documents(seed, 30) for seed in range(3)]
    shards = [make(tmp_path / f"s{number}", part, 4) for number, part in enumerate(parts)]
    builder = megatron.IndexedDatasetBuilder(str(tmp_path / "theirs.bin"), dtype=megatron.DType.dtype_from_code(4))
    for shard in shards:
        builder.add_index(shard)
    builder.finalize(str(tmp_path / "theirs.idx"))
    merge(shards, str(tmp_path / "ours"))
    for suffix in (".bin", ".idx"):
        assert (tmp_path / f"ours{suffix}").read_bytes() == (tmp_path / f"theirs{suffix}").read_bytes()


def test_modes_survive(tmp_path, megatron):
    a = make(tmp_path / "a", [[[1], [2]], [[3]]], modes=b"\0\1\2")
    b = make(tmp_path / "b", [[[4]]], modes=b"\3")
    merge([a, b], str(tmp_path / "out"))
    dataset = megatron.IndexedDataset(str(tmp_path / "out"), multimodal=True)
    assert [(ids.tolist(), int(mode)) for ids, mode in (dataset[at] for at in range(4))] == [
        ([1], 0), ([2], 1), ([3], 2), ([4], 3),
    ]  # fmt: skip


def test_megatron_cannot_open_what_holds_no_tokens(tmp_path, megatron):
    prefix = make(tmp_path / "d", [])
    assert [finding.id for finding in verify(prefix)] == [EMPTY]
    with pytest.raises(ValueError, match="empty"):
        megatron.IndexedDataset(prefix)


@pytest.mark.parametrize("seed", range(40))
def test_what_verify_passes_megatron_reads_as_it_is_written(tmp_path, megatron, seed):
    """A bit of the index flipped: found, or nothing that Megatron reads has changed."""
    rng = random.Random(seed)
    documents = [*some_documents(seed, 8), [[1, 2]]]
    prefix = make(tmp_path / "d", documents)
    index = bytearray(Path(f"{prefix}.idx").read_bytes())
    index[rng.randrange(len(index))] ^= 1 << rng.randrange(8)
    Path(f"{prefix}.idx").write_bytes(index)
    if not errors(verify(prefix)):
        # Where a document of several sequences is cut changes no token.
        read = by_megatron(megatron, prefix)
        assert [ids for document in read for ids in document] == [ids for document in documents for ids in document]
