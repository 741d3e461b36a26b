"""Files and settings that make no tokenizer, each with a message that says what to do; and what settings change."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import pytest
import tokenizer_helpers as helpers

from megawrap.errors import ConfigError
from megawrap.preprocess.settings import TokenizerSettings
from megawrap.preprocess.tokenizers import build


@pytest.fixture(scope="module")
def kinds(tmp_path_factory) -> dict[str, TokenizerSettings]:
    return helpers.every_kind(tmp_path_factory.mktemp("kinds"))


def refusal(settings: TokenizerSettings) -> str:
    with pytest.raises(ConfigError) as refused:
        build(settings)
    return str(refused.value)


def test_a_tokenizer_json_alone_and_its_folder_are_one_tokenizer(kinds):
    folder = kinds["hugging face"]
    file = dataclasses.replace(folder, model=folder.model / "tokenizer.json")
    assert build(file).fingerprint == build(folder).fingerprint and build(file).eod == build(folder).eod == 1201


def test_the_fingerprint_knows_all_that_changes_ids(kinds):
    prints = {name: build(settings).fingerprint for name, settings in kinds.items() if name != "gpt sentencepiece"}
    prints["deepseek"] = "as hugging face"
    prints |= {f"{kind}, old": build(dataclasses.replace(kinds[kind], legacy=True)).fingerprint
               for kind in ("llama2", "sentencepiece", "gpt2", "tik v2")}  # fmt: skip
    assert len(set(prints.values())) == len(prints)


def test_the_old_llama_tokenizer_begins_with_bos(kinds):
    new, old = build(kinds["llama2"]), build(dataclasses.replace(kinds["llama2"], legacy=True))
    batch = [*helpers.NASTY, *helpers.texts()[:20]]
    assert helpers.ids_of(old, batch) == [[1, *ids] for ids in helpers.ids_of(new, batch)]


def test_the_old_sentencepiece_tokenizer_knows_its_special_tokens(kinds):
    new, old = build(kinds["sentencepiece"]), build(dataclasses.replace(kinds["sentencepiece"], legacy=True))
    # <CLS>, <SEP>, <EOD>, <MASK> and a PAD that the model lacks
    assert (old.vocab_size, old.eod) == (new.vocab_size + 5, new.vocab_size + 2)
    (ids,) = helpers.ids_of(old, ["one<EOD>two</s>"])
    one, two = (new.encode_batch([word]).ids.tolist() for word in ("one", "two"))
    assert ids == [*one, new.vocab_size + 2, *two, 2]
    assert old.decode(ids) == "one <EOD> two </s>"


def test_the_old_null_and_gpt2_tokenizers(kinds):
    null = build(TokenizerSettings(type="NullTokenizer", vocab_size=9, legacy=True))
    assert (null.vocab_size, null.eod, null.encode_batch(["9"]).ids.tolist()) == (10, 9, [9])
    old = build(dataclasses.replace(kinds["gpt2"], legacy=True))
    (ids,) = helpers.ids_of(old, ["<|endoftext|>"])
    assert len(ids) > 1 and old.eod == 0 and build(kinds["gpt2"]).encode_batch(["<|endoftext|>"]).ids.tolist() == [0]


def test_a_template_that_the_configuration_contradicts_is_told(tmp_path):
    folder = helpers.with_bos(tmp_path / "hf", add_bos_token=False)
    made = build(TokenizerSettings(type="HuggingFaceTokenizer", model=folder))
    assert made.doubt is not None and made.doubt.startswith("tokenizer_config.json says add_bos_token: false")


HF, GPT2, TIK = "HuggingFaceTokenizer", "GPT2BPETokenizer", "TikTokenizer"


def test_folders_and_files_without_a_tokenizer_json(tmp_path):
    assert refusal(TokenizerSettings(type=HF, model=tmp_path)).endswith("has no tokenizer.json")
    (tmp_path / "tokenizer.model").write_bytes(b"x")
    assert "Llama2Tokenizer reads a SentencePiece tokenizer.model itself" in refusal(
        TokenizerSettings(type=HF, model=tmp_path)
    )
    assert "Llama2Tokenizer reads SentencePiece" in refusal(
        TokenizerSettings(type=HF, model=tmp_path / "tokenizer.model")
    )
    (tmp_path / "tokenizer.json").write_text("{}")
    assert "tokenizer.json is no tokenizer.json: " in refusal(TokenizerSettings(type=HF, model=tmp_path))
    assert refusal(TokenizerSettings(type=HF, model=Path("no_such_thing"))) == (
        "no_such_thing: there is no such file or folder"
    )


@pytest.mark.parametrize("content", ["[", "[]"])
def test_a_configuration_that_is_none(tmp_path, content):
    folder = helpers.with_bos(tmp_path / "hf")
    (folder / "tokenizer_config.json").write_text(content)
    assert "tokenizer_config.json is no JSON" in refusal(TokenizerSettings(type=HF, model=folder))


def test_a_name_on_the_hub_without_a_network_says_how_to_fetch_it(monkeypatch, tmp_path):
    import huggingface_hub

    def offline(*_, local_files_only=False, **__):
        error = huggingface_hub.errors.LocalEntryNotFoundError
        raise error("not in the cache") if local_files_only else ConnectionError("the network is unreachable")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", offline)
    message = refusal(TokenizerSettings(type=HF, model=Path("meta-llama/Meta-Llama-3-8B")))
    assert message.startswith(
        "meta-llama/Meta-Llama-3-8B is no file or folder here, and cannot be fetched from the hub "
        "(the network is unreachable). Where there is a network: hf download meta-llama/Meta-Llama-3-8B "
    )
    folder = helpers.with_bos(tmp_path / "hf")
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: str(folder))
    assert build(TokenizerSettings(type=HF, model=Path("a/b"))).vocab_size == 1202


def test_files_of_gpt2_and_bert_that_are_none(tmp_path, kinds):
    vocab, merges = kinds["gpt2"].vocab_file, kinds["gpt2"].merge_file
    broken = tmp_path / "broken"
    broken.write_text("x y z\n")
    assert "are no vocabulary and merges of GPT-2" in refusal(
        TokenizerSettings(type=GPT2, vocab_file=vocab, merge_file=broken)
    )
    assert "are no vocabulary and merges of GPT-2" in refusal(
        TokenizerSettings(type=GPT2, vocab_file=broken, merge_file=merges)
    )
    without = tmp_path / "vocab.json"
    words = {word: id for id, word in enumerate(json.loads(vocab.read_text())) if word != "<|endoftext|>"}
    without.write_text(json.dumps(words))
    assert "lacks <|endoftext|>, which ends a document" in refusal(
        TokenizerSettings(type=GPT2, vocab_file=without, merge_file=merges)
    )
    assert "lacks [PAD] [UNK] [CLS] [SEP] [MASK]" in refusal(
        TokenizerSettings(type="BertWordPieceCase", vocab_file=broken)
    )
    assert "BertWordPieceCase as it was before 0.15" in refusal(dataclasses.replace(kinds["bert, case"], legacy=True))
    assert "there is no such file" in refusal(TokenizerSettings(type=GPT2, vocab_file=vocab, merge_file=tmp_path / "m"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tiktoken_pattern": "v3"}, "--tiktoken-pattern v3: it is v1 or v2"),
        ({"vocab_size": 999}, "has 600 tokens, and 30 special ones make 630"),
        ({"special_tokens": ("<s>", "</s>")}, "lacks <unk> <mask> <pad> <cls> <sep>, which TikTokenizer needs"),
        ({"tiktoken_num_special_tokens": 3}, "--tiktoken-num-special-tokens 3: 7 special tokens are given"),
        ({"special_tokens": ("<s>", "</s>", "<unk>", "<mask>", "<pad>", "<cls>", "<sep>", "<s>")},
         "has <s> more than once"),
        ({"include_special_tokens": False}, "TikTokenizer does not read it; leave it out"),
    ],
)  # fmt: skip
def test_special_tokens_and_sizes_that_do_not_fit(kinds, change, message):
    assert message in refusal(dataclasses.replace(kinds["tik v2"], **change))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[", "is not a JSON list"),
        ('{"vocab": []}', "it is Mistral's tekken format: its list `vocab`"),
        ('[{"rank": 0}]', "is not a JSON list"),
        ('[{"rank": 1, "token_bytes": "AA==", "token_str": ""}]', "ranks must go up from 0"),
        ('[{"rank": 0, "token_bytes": "!", "token_str": ""}]', "is not a JSON list"),
    ],
)
def test_ranks_that_are_none(tmp_path, content, message):
    file = tmp_path / "ranks.json"
    file.write_text(content)
    assert message in refusal(TokenizerSettings(type=TIK, model=file, **helpers.TIK))


@pytest.mark.parametrize(("kind", "library"), [("hugging face", "tokenizers"), ("tik v1", "tiktoken")])
def test_a_missing_library_is_named(kinds, monkeypatch, kind, library):
    monkeypatch.setitem(sys.modules, library, None)
    assert f"the package {library}: pip install {library}" in refusal(kinds[kind])
