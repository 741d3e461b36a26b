"""The ids of every type are those of megatron-core's own tokenizers, given the same files and flags."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import tokenizer_helpers as helpers

from megawrap.preprocess.settings import TokenizerSettings
from megawrap.preprocess.tokenizers import build

pytestmark = pytest.mark.train

KINDS = (
    "llama2", "sentencepiece", "gpt sentencepiece", "hugging face", "hugging face, no BOS", "hugging face, more tokens",
    "gpt2", "bert", "bert, case", "tik v1", "tik v2", "tik, tokens",
)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def no_network() -> Any:
    """Whatever a library looks for on the hub is not there."""
    patch = pytest.MonkeyPatch()
    patch.setenv("HF_HUB_OFFLINE", "1")
    pytest.importorskip("transformers", reason="Megatron's tokenizers need transformers")
    yield
    patch.undo()


@pytest.fixture(scope="module")
def kinds(tmp_path_factory) -> dict[str, TokenizerSettings]:
    return helpers.every_kind(tmp_path_factory.mktemp("kinds"))


@pytest.fixture
def hub_in_a_folder(tmp_path, monkeypatch):
    """Megatron asks for models by name even when it is given files; folders of these names are taken for them."""
    for name, kind, more in (
        ("gpt2", "GPT2Tokenizer", {}),
        ("bert-large-uncased", "BertTokenizer", {"do_lower_case": True}),
        ("bert-large-cased", "BertTokenizer", {"do_lower_case": False}),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": kind, **more}))
    monkeypatch.chdir(tmp_path)


def megatrons(settings: TokenizerSettings) -> Any:
    """Megatron's tokenizer, made from its command-line arguments."""
    from megatron.core.tokenizers.utils.build_tokenizer import build_tokenizer

    def word(value: Path | None) -> str | None:
        return None if value is None else str(value)

    kept = settings.tiktoken_num_special_tokens
    return build_tokenizer(
        types.SimpleNamespace(
            tokenizer_type=settings.type,
            tokenizer_model=word(settings.model),
            vocab_file=word(settings.vocab_file),
            merge_file=word(settings.merge_file),
            vocab_size=settings.vocab_size,
            special_tokens=list(settings.special_tokens) if settings.special_tokens else None,
            tiktoken_pattern=settings.tiktoken_pattern,
            tiktoken_num_special_tokens=1000 if kept is None else kept,
            tokenizer_hf_no_use_fast=False,
            tokenizer_hf_no_include_special_tokens=settings.include_special_tokens is False,
            tokenizer_sentencepiece_legacy=False,
            tokenizer_sentencepiece_ignore_extra_whitespaces=True,
            trust_remote_code=False,
            chat_template=None,
            metadata_path=None,
            pad_vocab_size=False,
        )
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("hub_in_a_folder")
def test_ids_vocabulary_and_end_of_document_are_megatrons(kind, kinds):
    ours, theirs = build(kinds[kind]), megatrons(kinds[kind])
    assert (ours.vocab_size, ours.eod) == (theirs.vocab_size, theirs.eod)
    batch = [*helpers.NASTY, *helpers.texts()[:60], *helpers.random_texts(300, seed=len(kind))]
    for text, ids in zip(batch, helpers.ids_of(ours, batch), strict=True):
        assert ids == list(theirs.tokenize(text)), repr(text)


CONFIGURATIONS = {
    "plain": {},
    "BOS asked for": {"add_bos_token": True},
    "BOS and EOS asked for, which transformers 5 does not heed": {"add_bos_token": True, "add_eos_token": True},
    "BOS not asked for, which transformers 5 does not heed": {"add_bos_token": False},
    "only SEP": {"eos_token": None, "sep_token": "<|eos|>"},
    "only CLS": {"bos_token": None, "cls_token": "<|bos|>"},
    "names as objects": {"eos_token": {"__type": "AddedToken", "content": "<|eos|>", "lstrip": False, "rstrip": False,
                                       "normalized": False, "single_word": False, "special": True}},
    "an EOS that is new": {"eos_token": "<|endoftext|>"},
    "more added tokens": {"added_tokens_decoder": {
        str(1202 + number): {"content": token, "lstrip": False, "rstrip": False, "normalized": False,
                             "single_word": False, "special": False}
        for number, token in enumerate(("joiner", "naïve"))}},
}  # fmt: skip


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_the_files_beside_a_tokenizer_json_count_as_for_megatron(name, tmp_path):
    folder = helpers.with_bos(tmp_path / "hf", **CONFIGURATIONS[name])
    settings = TokenizerSettings(type="HuggingFaceTokenizer", model=folder)
    ours, theirs = build(settings), megatrons(settings)
    assert (ours.vocab_size, ours.eod) == (theirs.vocab_size, theirs.eod)
    batch = [*helpers.NASTY, *helpers.random_texts(40)]
    assert helpers.ids_of(ours, batch) == [list(theirs.tokenize(text)) for text in batch]


CHECKOUTS = [Path(one) for one in os.environ.get("MEGAWRAP_CHECKOUTS", "").split(os.pathsep) if one]
OLD = [one for one in CHECKOUTS if (one / "megatron/training/tokenizer/tokenizer.py").is_file()]
OLD_KINDS = ("llama2", "sentencepiece", "gpt sentencepiece", "hugging face", "gpt2", "tik v1", "tik v2", "null")
_OLD_PROGRAM = """
import json, sys, types
sys.path.insert(0, sys.argv[1])
from megatron.training.tokenizer.tokenizer import build_tokenizer
answers = {}
for kind, job in json.load(sys.stdin).items():
    args = types.SimpleNamespace(rank=1, make_vocab_size_divisible_by=128, tensor_model_parallel_size=1,
                                 vocab_extra_ids=0, trust_remote_code=False, padded_vocab_size=None, **job["args"])
    made = build_tokenizer(args)
    answers[kind] = made.vocab_size, made.eod, [made.tokenize(text) for text in job["texts"]]
print("ANSWER" + json.dumps(answers))
"""


def _old_job(settings: TokenizerSettings) -> dict[str, Any]:
    texts = ["1 2 3"] if settings.type == "NullTokenizer" else [*helpers.NASTY, *helpers.random_texts(60)]
    files = {"tokenizer_model": settings.model, "vocab_file": settings.vocab_file, "merge_file": settings.merge_file}
    args = {
        **{name: None if value is None else str(value) for name, value in files.items()},
        "tokenizer_type": settings.type,
        "vocab_size": settings.vocab_size,
        "tiktoken_pattern": settings.tiktoken_pattern,
        "tiktoken_num_special_tokens": settings.tiktoken_num_special_tokens,
        "tiktoken_special_tokens": None,
    }
    return {"args": args, "texts": texts}


@pytest.mark.skipif(not OLD, reason="MEGAWRAP_CHECKOUTS names no source tree with the old tokenizers")
@pytest.mark.parametrize("tree", OLD, ids=[one.name for one in OLD])
def test_the_old_tokenizers_are_those_of_old_source_trees(tree, kinds):
    null = TokenizerSettings(type="NullTokenizer", vocab_size=100)
    chosen = {kind: dataclasses.replace({**kinds, "null": null}[kind], legacy=True) for kind in OLD_KINDS}
    jobs = {kind: _old_job(settings) for kind, settings in chosen.items()}
    done = subprocess.run(
        [sys.executable, "-c", _OLD_PROGRAM, str(tree)], input=json.dumps(jobs),
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert "ANSWER" in done.stdout, done.stderr[-2000:]
    answers = json.loads(done.stdout.rpartition("ANSWER")[2])
    for kind, (vocab_size, eod, ids) in answers.items():
        ours, texts = build(chosen[kind]), jobs[kind]["texts"]
        assert (ours.vocab_size, ours.eod) == (vocab_size, eod), kind
        for text, mine, theirs in zip(texts, helpers.ids_of(ours, texts), ids, strict=True):
            assert mine == theirs, (kind, text)
