"""The quicker encoder gives the ids of the reference, or is not used."""

from __future__ import annotations

import dataclasses
import random
import sys

import numpy as np
import pytest
import tokenizer_helpers as helpers

from megawrap.preprocess.settings import TokenizerSettings
from megawrap.preprocess.tokenizers import build, choose, fast, guard, unicode_tables

pytest.importorskip("gigatoken", reason="gigatoken is not installed")

QUICK = ("llama2", "gpt sentencepiece", "hugging face", "hugging face, no BOS", "hugging face, more tokens", "gpt2",
         "deepseek")  # fmt: skip
SLOW = {
    "sentencepiece": "only BPE sentencepiece models are supported, got model_type 'unigram'",
    "bert": "gigatoken knows BPE, and this is WordPiece",
    "tik v2": "there is no quicker encoder than tiktoken",
}


@pytest.fixture(scope="module")
def kinds(tmp_path_factory) -> dict[str, TokenizerSettings]:
    return helpers.every_kind(tmp_path_factory.mktemp("kinds"))


def quicker(settings: TokenizerSettings) -> fast.FastTokenizer:
    """As in a worker."""
    made = build(fast.define(settings, build(settings)))
    assert isinstance(made, fast.FastTokenizer)
    return made


@pytest.mark.parametrize("legacy", [None, True])
@pytest.mark.parametrize("kind", QUICK)
def test_the_quicker_encoder_is_chosen_and_gives_the_same_ids(kind, legacy, kinds):
    settings = dataclasses.replace(kinds[kind], legacy=legacy)
    if legacy and settings.special_tokens:
        settings = dataclasses.replace(settings, special_tokens=None)
    choice = choose(settings, helpers.texts()[:40])
    assert choice.reason.startswith("gigatoken 0.10.") and "texts that were tried" in choice.reason
    assert (choice.recipe.settings, choice.tokenizer.engine) == (settings, choice.reason.split(":")[0])
    quick, reference = build(choice.recipe), build(settings)
    assert type(quick) is fast.FastTokenizer and type(reference) is not fast.FastTokenizer
    same = ("vocab_size", "eod", "fingerprint", "special_tokens")
    assert [getattr(quick, name) for name in same] == [getattr(reference, name) for name in same]
    batch = [*helpers.NASTY, *helpers.texts(), *helpers.random_texts(400, seed=len(kind))]
    assert helpers.ids_of(quick, batch) == helpers.ids_of(reference, batch)
    assert quick.decode([5, 6]) == reference.decode([5, 6]) and quick.piece(300) == reference.piece(300)


@pytest.mark.parametrize("kind", SLOW)
def test_what_has_no_quicker_encoder_says_why(kind, kinds):
    choice = choose(kinds[kind])
    assert choice.recipe == kinds[kind] and SLOW[kind] in choice.reason
    assert choice.reason.startswith(build(kinds[kind]).engine)


def test_a_missing_library_is_no_failure(kinds, monkeypatch):
    monkeypatch.setitem(sys.modules, "gigatoken", None)
    choice = choose(kinds["gpt2"])
    assert choice.recipe == kinds["gpt2"] and "gigatoken is not installed" in choice.reason


class Wrong(fast.FastTokenizer):
    """Gives another id where a text has an x that only some texts have."""

    def encode_batch(self, texts):
        encoded = super().encode_batch(texts)
        place = next((place for place, text in enumerate(texts) if "needle" in text), None)
        if place is not None:
            encoded.ids[encoded.lengths[:place].sum() + 1] += 1
        return encoded


def test_a_difference_on_the_sample_falls_back_and_is_told(kinds, monkeypatch):
    monkeypatch.setattr(fast, "FastTokenizer", Wrong)
    assert type(choose(kinds["gpt2"], ["hay"]).recipe) is fast.Definition
    choice = choose(kinds["gpt2"], ["hay", "hay with a needle in it", "hay"])
    assert choice.recipe == kinds["gpt2"]
    assert "differs from it on 'hay with a needle in it', where id 1 is " in choice.reason
    assert type(choice.tokenizer) is not Wrong


def test_special_tokens_in_awkward_places_are_tried(kinds, monkeypatch):
    """An encoder that does not know the special tokens is found out without a sample."""

    define = fast.define

    def blind(settings, reference):
        definition = define(settings, reference)
        text = helpers.json.dumps(helpers.json.loads(definition.text) | {"added_tokens": []})
        return dataclasses.replace(definition, text=text)

    monkeypatch.setattr(fast, "define", blind)
    choice = choose(kinds["hugging face"])
    assert choice.recipe == kinds["hugging face"] and "<|" in choice.reason


def test_texts_with_doubtful_code_points_go_to_the_reference(kinds):
    reference = build(kinds["hugging face"])
    quick = fast.FastTokenizer(fast.define(kinds["hugging face"], reference), lambda: reference)
    texts = ["plain", "\U0001faea's new", "", "caf\u00e9", "\u088f", "end"]
    assert unicode_tables.doubtful(texts) == [1, 4]
    seen = []
    encode = reference.encode_batch
    reference.encode_batch = lambda batch: seen.append(list(batch)) or encode(batch)
    assert helpers.ids_of(quick, texts) == [encode([text]).ids.tolist() for text in texts]
    assert seen == [["\U0001faea's new", "\u088f"]]
    seen.clear()
    assert helpers.ids_of(quick, texts[1:2]) == [encode(texts[1:2]).ids.tolist()] and len(seen) == 1


def test_a_worker_makes_the_reference_when_it_needs_it(kinds):
    reference = build(kinds["hugging face"])
    quick = quicker(kinds["hugging face"])
    texts = ["plain", "\U0001faea's new"]
    assert helpers.ids_of(quick, texts[:1]) == helpers.ids_of(reference, texts[:1])
    assert "_reference" not in vars(quick)
    assert helpers.ids_of(quick, texts) == helpers.ids_of(reference, texts)
    assert "_reference" in vars(quick)


def test_every_code_point_is_either_doubtful_or_encoded_alike(kinds):
    """A part of them at each run of the tests; all were tried when the table was made."""
    reference = build(kinds["hugging face"])
    quick = quicker(kinds["hugging face"])
    points = random.Random(5).sample([point for point in range(0x110000) if not 0xD800 <= point < 0xE000], 20_000)
    texts = [f"a{chr(p)}'s b{chr(p)}1{chr(p)} {chr(p)}'ll!{chr(p)}\n {chr(p)}{chr(p)}a's 12{chr(p)}34" for p in points]
    assert helpers.ids_of(quick, texts) == helpers.ids_of(reference, texts)


def test_literal_control_pieces_are_text_to_sentencepiece(kinds):
    quick = quicker(kinds["llama2"])
    ids = quick.encode_batch(["<s>strike</s> <unk>"]).ids.tolist()
    assert not {0, 1, 2} & set(ids)


@pytest.mark.parametrize(("before", "after"), [([], []), ([7], []), ([], [8]), ([7, 6], [8, 9]), ([1], [2])])
def test_ids_are_put_around_every_text(kinds, before, after):
    reference = build(kinds["hugging face, no BOS"])
    definition = fast.define(kinds["hugging face, no BOS"], reference)
    quick = fast.FastTokenizer(
        dataclasses.replace(definition, before=tuple(before), after=tuple(after)), lambda: reference
    )
    texts = ["one", "", "", "two three", "four", ""]
    found = quick.encode_batch(texts)
    expected = [[*before, *row, *after] for row in helpers.ids_of(reference, texts)]
    assert helpers.ids_of(quick, texts) == expected
    assert (found.ids.dtype, found.lengths.dtype) == (np.int32, np.int64)


def test_the_cache_is_dropped_when_it_has_grown(kinds, monkeypatch):
    quick = quicker(kinds["gpt2"])
    reference = build(kinds["gpt2"])
    grown = iter(range(0, 10**12, 10 << 20))
    monkeypatch.setattr(fast, "resident", lambda: next(grown))
    made, quick.cache_limit = [], 25 << 20
    recycle = quick.recycle
    quick.recycle = lambda: made.append(quick.cache_bytes) or recycle()
    texts = helpers.texts()[:50]
    found = [helpers.ids_of(quick, [text]) for text in texts]
    assert found == [helpers.ids_of(reference, [text]) for text in texts]
    assert len(made) > 5 and min(made) > 25 << 20


def test_hard_texts_are_many_and_hold_the_special_tokens():
    texts = list(guard.hard_texts(["<s>"]))
    assert len(texts) > 80 and "a<s>b <s> <s><s>\n <s>\n" in texts and max(map(len, texts)) >= 20_000
    assert any("\u200b" in text for text in texts) and any("\U0001f469\u200d" in text for text in texts)
