"""The golden vectors, and what a tokenizer does otherwise than its family, by name."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import tokenizer_helpers as helpers
import tokenizers

from megawrap.preprocess.golden import Family, Special, families, family_of
from megawrap.preprocess.golden.check import bos_wanted, check, compare_ids
from megawrap.preprocess.golden.diagnose import diagnose
from megawrap.preprocess.golden.diff import compare
from megawrap.preprocess.settings import TokenizerSettings
from megawrap.preprocess.tokenizers import build

SHARED = Path(__file__).parents[3] / "shared" / "data" / "golden_tokens.json"


@pytest.mark.parametrize("key", ["gpt2", "llama2", "llama3", "qwen2"])
def test_a_family_hangs_together(key):
    family = families()[key]
    assert len(family.cases) >= 41 and len(set(family.texts)) == len(family.cases)
    ids = [id for _, case in family.cases for id in case]
    assert min(ids) >= 0 and max(ids) < min(family.vocab_sizes)
    special = {one.id for one in family.special.values()}
    assert not special & set(ids) and max(special) < max(family.vocab_sizes)
    assert dict(family.cases)[""] == () and "eos" in family.special


@pytest.mark.skipif(not SHARED.is_file(), reason="../shared is not here")
def test_the_vectors_are_those_that_were_collected():
    collected = json.loads(SHARED.read_text(encoding="utf-8"))["families"]
    ours = {key: [[text, list(ids)] for text, ids in family.cases] for key, family in families().items()}
    assert ours == collected


@pytest.mark.parametrize(
    ("preset", "key"),
    [("llama2", "llama2"), ("llama3", "llama3"), ("qwen25", "qwen2"), ("qwen3", "qwen2"), ("gpt2", "gpt2")],
)
def test_presets_of_tokenizers_have_a_family(preset, key):
    found = family_of(preset)
    assert found is not None and found.key == key


def test_others_have_none():
    assert family_of("mixtral") is None and family_of(None) is None


TEXTS = (*families()["gpt2"].texts, "caf\u00e9 e\u0301", "½ ﬁ", "Hello  World")


def as_family(tokenizer, **changes) -> Family:
    """A family that gives what ``tokenizer`` gives."""
    cases = tuple((text, tuple(tokenizer.encode(text, add_special_tokens=False).ids)) for text in TEXTS)
    special = {"bos": Special("<|bos|>", 1200), "eos": Special("<|eos|>", 1201)}
    return Family("ours", "Ours", (), (1202,), False, special, cases, **changes)


@pytest.fixture
def folder(tmp_path) -> Path:
    return helpers.with_bos(tmp_path / "hf")


@pytest.fixture
def original(folder) -> tokenizers.Tokenizer:
    return tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))


def changed(folder: Path, change) -> TokenizerSettings:
    """The tokenizer in ``folder`` after a change of its definition."""
    file = folder / "tokenizer.json"
    definition = json.loads(file.read_text())
    change(definition)
    file.write_text(json.dumps(definition))
    return TokenizerSettings(type="HuggingFaceTokenizer", model=folder, include_special_tokens=False)


def kinds_of(family, settings, *, wanted=False):
    return [(one.kind, one.message) for one in diagnose(family, build(settings), bos_wanted=wanted)]


def test_the_same_tokenizer_agrees(folder, original):
    family = as_family(original)
    bare = TokenizerSettings(type="HuggingFaceTokenizer", model=folder, include_special_tokens=False)
    assert kinds_of(family, bare) == []
    assert kinds_of(family, dataclasses.replace(bare, include_special_tokens=True), wanted=True) == []


def test_bos_added_or_missing(folder, original):
    family = as_family(original)
    bare = TokenizerSettings(type="HuggingFaceTokenizer", model=folder, include_special_tokens=False)
    ((kind, message),) = kinds_of(family, dataclasses.replace(bare, include_special_tokens=True))
    assert (kind, message) == ("BOS added", "id 1200 (BOS) is put before every text, and nothing is in the family")
    ((kind, message),) = kinds_of(family, bare, wanted=True)
    assert (kind, message) == ("BOS missing", "Ours begins every text with BOS, id 1200, and here is nothing")


def test_eos_added(folder, original):
    def template(definition):
        definition["post_processor"]["single"] = [
            {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "<|bos|>", "type_id": 0}}
        ]  # fmt: skip

    settings = dataclasses.replace(changed(folder, template), include_special_tokens=None)
    assert kinds_of(as_family(original), settings) == [("EOS added", "id 1200 (<|bos|>) is put behind every text")]


def test_a_space_in_front(folder, original):
    def prefix(definition):
        definition["normalizer"] = {"type": "Prepend", "prepend": " "}

    ((kind, message),) = kinds_of(as_family(original), changed(folder, prefix))
    assert kind == "leading space" and message.startswith("a space is put before every text")


def test_a_space_in_front_that_is_missing(folder, original):
    original.normalizer = tokenizers.normalizers.Prepend(" ")
    ((kind, message),) = kinds_of(as_family(original), changed(folder, lambda _: None))
    assert kind == "leading space" and message.startswith("no space is put before a text, and the family puts one")


def test_a_space_in_front_that_is_taken_away(folder, original):
    strip = {"type": "Replace", "pattern": {"Regex": "^ "}, "content": ""}
    found = kinds_of(as_family(original), changed(folder, lambda definition: definition.update(normalizer=strip)))
    assert found[0][0] == "leading space" and found[0][1].startswith("a leading space is taken away")


@pytest.mark.parametrize(
    ("normalizer", "name"),
    [
        ({"type": "Lowercase"}, "lower case"),
        ({"type": "NFKC"}, "form NFKC"),
        ({"type": "NFC"}, "form NFC"),
    ],
)
def test_normalisation(folder, original, normalizer, name):
    found = kinds_of(as_family(original), changed(folder, lambda definition: definition.update(normalizer=normalizer)))
    assert [kind for kind, _ in found] == ["normalisation"] and name in found[0][1]


def test_another_vocabulary(folder, original):
    def rotate(definition):
        vocab = definition["model"]["vocab"]
        ids = list(vocab.values())
        definition["model"]["vocab"] = dict(zip(vocab, ids[1:] + ids[:1], strict=True))

    ((kind, message),) = kinds_of(as_family(original), changed(folder, rotate))
    assert kind == "vocabulary" and "in the family, is" in message


def test_another_order_of_merges(folder, original):
    def turn_around(definition):
        definition["model"]["merges"].reverse()
        definition["model"]["ignore_merges"] = False

    ((kind, message),) = kinds_of(as_family(original), changed(folder, turn_around))
    assert kind == "merges" and "the vocabulary is the same" in message


def test_size_and_special_ids(folder, original):
    family = as_family(original)
    settings = TokenizerSettings(type="HuggingFaceTokenizer", model=folder, include_special_tokens=False)
    tokenizer = build(settings)
    assert check(family, settings, tokenizer) == []
    smaller = dataclasses.replace(family, vocab_sizes=(1000,))
    assert [(one.id, one.severity) for one in check(smaller, settings, tokenizer)] == [("MW687", "warning")]
    larger = dataclasses.replace(family, vocab_sizes=(5000,), special={"eos": Special("<|eos|>", 1200)})
    found = check(larger, settings, tokenizer)
    assert [(one.id, one.severity) for one in found] == [
        ("MW687", "error"), ("MW688", "error"), ("MW688", "warning")
    ]  # fmt: skip
    assert "its eos, id 1200, is <|eos|>, and '<|bos|>' here" in found[1].message


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"type": "HuggingFaceTokenizer"}, True),
        ({"type": "HuggingFaceTokenizer", "include_special_tokens": False}, False),
        ({"type": "Llama2Tokenizer"}, False),
        ({"type": "Llama2Tokenizer", "legacy": True}, True),
        ({"type": "GPT2BPETokenizer"}, False),
    ],
)
def test_who_puts_bos(settings, wanted):
    assert bos_wanted(families()["llama2"], TokenizerSettings(**settings)) is wanted


def test_a_list_of_ids_with_bos_in_it():
    """A list from a blog, which says that special tokens are off."""
    family = families()["llama2"]
    wanted = dict(family.cases)["Hello world!"]
    found = compare_ids(family, "Hello world!", [1, 15043, 3186, 29991], wanted)
    assert found is not None and found.id == "MW681" and found.message.endswith(": the first id is BOS")
    assert compare_ids(family, "Hello world!", [15043, 3186, 29991], wanted) is None
    other = compare_ids(family, "Hello world!", [15043], wanted)
    assert other is not None and other.id == "MW686"


def test_two_tokenizers_side_by_side(folder, original):
    bare = TokenizerSettings(type="HuggingFaceTokenizer", model=folder, include_special_tokens=False)
    a, b = build(bare), build(dataclasses.replace(bare, include_special_tokens=True))
    found = compare(a, b, TEXTS)
    assert (found.differing, found.texts, found.around) == (0, len(TEXTS), ((None, None), (1200, None)))
    (finding,) = found.findings()
    assert finding.message == "around every text: nothing in the first, id 1200 before in the second"
    lower = build(changed(folder, lambda definition: definition.update(normalizer={"type": "Lowercase"})))
    found = compare(a, lower, ["same", "Sa", "no"], limit=1)
    assert found.differing == 1
    (one,) = found.differences
    assert (one.text, one.at) == ("Sa", 0) and one.ids[0] != one.ids[1] and len(one.pieces[0]) == len(one.ids[0])
