"""The tokenizers: the ids of their libraries, and messages for settings that make none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from preprocess_helpers import NASTY, SP

from megawrap.errors import ConfigError
from megawrap.preprocess.sample.make import TOKENIZER
from megawrap.preprocess.settings import TokenizerSettings
from megawrap.preprocess.tokenizers import TOKENIZERS, BadText, build
from megawrap.preprocess.tokenizers.protocol import dtype_for


@pytest.mark.parametrize("type", ["Llama2Tokenizer", "SentencePieceTokenizer", "GPTSentencePieceTokenizer"])
def test_sentencepiece_in_batch_is_sentencepiece_one_by_one(type, processor):
    tokenizer = build(TokenizerSettings(type=type, model=TOKENIZER))
    encoded = tokenizer.encode_batch(NASTY)
    expected = [processor.encode_as_ids(text) for text in NASTY]
    assert encoded.lengths.tolist() == list(map(len, expected))
    assert encoded.ids.tolist() == [id for ids in expected for id in ids]
    assert (tokenizer.vocab_size, tokenizer.eod) == (4096, 2)
    assert not {1, 2} & set(encoded.ids.tolist()), "no BOS, no EOS, not even for <s> and </s> in the text"


def test_no_texts_are_no_ids():
    for tokenizer in (build(SP), build(TokenizerSettings(type="NullTokenizer", vocab_size=9))):
        encoded = tokenizer.encode_batch([])
        assert (encoded.ids.size, encoded.lengths.size) == (0, 0)
    assert build(SP).encode_batch(["", ""]).lengths.tolist() == [0, 0]


def test_the_fingerprint_is_of_the_model_and_not_of_its_path(tmp_path):
    copy = tmp_path / "copy.model"
    copy.write_bytes(TOKENIZER.read_bytes())
    assert build(TokenizerSettings(type="Llama2Tokenizer", model=copy)).fingerprint == build(SP).fingerprint
    sizes = [build(TokenizerSettings(type="NullTokenizer", vocab_size=size)).fingerprint for size in (9, 10)]
    assert len({*sizes, build(SP).fingerprint}) == 3


def test_numbers_are_ids_to_the_null_tokenizer():
    tokenizer = build(TokenizerSettings(type="NullTokenizer", vocab_size=70_000))
    encoded = tokenizer.encode_batch(["1 2 3", "69999", "+5 \t7 1_0"])
    assert encoded.ids.tolist() == [1, 2, 3, 69999, 5, 7, 10]
    assert encoded.lengths.tolist() == [3, 1, 3]
    assert (tokenizer.vocab_size, tokenizer.eod) == (70_000, 69_999)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1 x", "NullTokenizer reads numbers with one space between two, and 'x' is none"),
        ("", "NullTokenizer reads numbers with one space between two, and '' is none"),
        ("1  2", "NullTokenizer reads numbers with one space between two, and '' is none"),
        ("10", "the id 10 is outside the vocabulary, 0 to 9"),
        ("-1", "the id -1 is outside the vocabulary, 0 to 9"),
    ],
)
def test_what_is_no_id_is_refused(text, reason):
    with pytest.raises(BadText) as bad:
        build(TokenizerSettings(type="NullTokenizer", vocab_size=10)).encode_batch(["1", text])
    assert (bad.value.index, bad.value.reason) == (1, reason)


@pytest.mark.parametrize(("vocab_size", "dtype"), [(65499, "<u2"), (65500, "<i4"), (128256, "<i4")])
def test_ids_are_stored_in_two_bytes_up_to_megatrons_limit(vocab_size, dtype):
    assert dtype_for(vocab_size) == dtype


KNOWN = (
    "Llama2Tokenizer, SentencePieceTokenizer, GPTSentencePieceTokenizer, HuggingFaceTokenizer, GPT2BPETokenizer, "
    "TikTokenizer, BertWordPieceLowerCase, BertWordPieceCase, DeepSeekV2Tokenizer, DeepSeekV3Tokenizer, NullTokenizer"
)


@pytest.mark.parametrize(
    ("settings", "messages", "nearest"),
    [
        (
            {"type": "Llama2"},
            [f"--tokenizer-type Llama2 is not among the types that can be used here: {KNOWN}"],
            ("Llama2Tokenizer",),
        ),
        ({"type": "Llama2Tokenizer"}, ["Llama2Tokenizer needs --tokenizer-model, which is not given"], ()),
        ({"type": "NullTokenizer"}, ["NullTokenizer needs --vocab-size, which is not given"], ()),
        (
            {"type": "Llama2Tokenizer", "merge_file": Path("m.txt"), "vocab_file": Path("v.json")},
            [
                "Llama2Tokenizer needs --tokenizer-model, which is not given",
                "--vocab-file v.json: Llama2Tokenizer does not read it; leave it out",
                "--merge-file m.txt: Llama2Tokenizer does not read it; leave it out",
            ],
            (),
        ),
        (
            {"type": "NullTokenizer", "vocab_size": 0},
            ["--vocab-size 0: a vocabulary has at least 1 and at most 2147483648 ids"],
            (),
        ),
        (
            {"type": "Llama2Tokenizer", "model": TOKENIZER, "vocab_size": 32000},
            [f"--vocab-size 32000: {TOKENIZER} has 4096 pieces"],
            ("4096",),
        ),
    ],
)
def test_settings_that_make_no_tokenizer(settings, messages, nearest):
    with pytest.raises(ConfigError) as refused:
        build(TokenizerSettings(**settings))
    assert [finding.message for finding in refused.value.findings] == messages
    assert refused.value.findings[0].nearest == nearest


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "{}: there is no such file"),
        (b"", "{} is empty, and a SentencePiece model is needed"),
        (b"garbage", "{} is not a SentencePiece model"),
        (TOKENIZER.read_bytes()[:1000], "{} is not a SentencePiece model"),
        (b'{"model": {}}', "{} is not a SentencePiece model (it looks like JSON: a tokenizer.json is another format)"),
    ],
)
def test_files_that_are_no_model(tmp_path, content, message):
    file = tmp_path / "tokenizer.model"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError) as refused:
        build(TokenizerSettings(type="Llama2Tokenizer", model=file))
    assert [finding.message for finding in refused.value.findings] == [message.replace("{}", str(file))]


def test_a_folder_is_no_model(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot be read: Is a directory$"):
        build(TokenizerSettings(type="Llama2Tokenizer", model=tmp_path))


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(ConfigError, match=r"^SentencePiece models need the package sentencepiece: pip install"):
        build(SP)


def test_every_type_is_one_that_megatron_knows():
    pytest.importorskip("megatron.core", reason="megatron-core is not installed")
    from megatron.core.tokenizers.utils.build_tokenizer import SUPPORTED_TOKENIZERS

    of_rocm = {"DeepSeekV2Tokenizer", "DeepSeekV3Tokenizer"}
    assert set(TOKENIZERS) - of_rocm <= set(SUPPORTED_TOKENIZERS)
