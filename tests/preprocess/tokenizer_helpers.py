"""Tokenizers of every type, trained here on the sample corpus, and texts that are hard to tokenize."""

from __future__ import annotations

import base64
import functools
import itertools
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import preprocess_helpers
import pytest
import sentencepiece

from megawrap.preprocess.sample.make import CORPUS
from megawrap.preprocess.settings import TokenizerSettings
from megawrap.preprocess.tokenizers import Tokenizer

# An extra: tests that train tokenizers are skipped where it is not installed.
tokenizers = pytest.importorskip("tokenizers")

NASTY = (
    *preprocess_helpers.NASTY,
    "<s> </s> <unk> <0x41> ▁ <|endoftext|> [CLS] [SEP] [MASK] <EOD> <extra_id_7> <SPECIAL_9>",
    "0123456789 3.14 1e-9 I'll we've THEY'RE don't",
    "Ωμέγα naïve Straße İstanbul ǅ ﬁ ²³ ½",
    "<|endoftext|><|endoftext|> <|bos|>x<|eos|> y",
)
SPECIAL = ["<|bos|>", "<|eos|>"]
_WORDS = ("the", "'s", " 12345", "\n\n", "   ", "!?", "<s>", "a\u0301", "\u200b", "'LL")


@functools.cache
def texts() -> tuple[str, ...]:
    """Some hundred texts of the sample corpus, in a dozen languages."""
    rows = CORPUS.read_bytes().splitlines()
    return tuple(json.loads(row)["text"] for row in rows[:: max(1, len(rows) // 300)])


def random_texts(count: int, seed: int = 0) -> list[str]:
    """Texts of code points from all planes, with words, digits and spaces between them."""
    rng = random.Random(seed)
    made = []
    for _ in range(count):
        words = []
        for _ in range(rng.randrange(1, 12)):
            kind = rng.randrange(6)
            if kind < 3:
                limit = (0x250, 0x10000, 0x110000)[kind]
                points = (rng.randrange(limit) for _ in range(rng.randrange(1, 5)))
                words.append("".join(chr(point) for point in points if not 0xD800 <= point < 0xE000))
            else:
                words.append(
                    rng.choice(("the", "'s", " 12345", "\n\n", "   ", "!?", "<s>", "a\u0301", "\u200b", "'LL"))
                )
        made.append(rng.choice(("", " ")).join(words))
    return made


def ids_of(tokenizer: Tokenizer, batch: Sequence[str]) -> list[list[int]]:
    """The ids of each text."""
    encoded = tokenizer.encode_batch(batch)
    rest = iter(encoded.ids.tolist())
    return [list(itertools.islice(rest, length)) for length in encoded.lengths.tolist()]


def byte_level(folder: Path) -> tokenizers.Tokenizer:
    """GPT-2's kind, as vocab.json and merges.txt in ``folder``."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=1200, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts(), trainer)
    tokenizer.model.save(str(folder))
    return tokenizer


def with_bos(folder: Path, **config: Any) -> Path:
    """Llama 3's kind: byte-level BPE behind a regular expression, BOS by template, whole words without merges."""
    pattern = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    made = tokenizers.Tokenizer(tokenizers.models.BPE(ignore_merges=True))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [
            tokenizers.pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated"),
            tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    made.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=1200, initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator(texts(), trainer)
    made.add_special_tokens(SPECIAL)
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="<|bos|> $A", special_tokens=[("<|bos|>", made.token_to_id("<|bos|>"))]
    )
    return saved(made, folder, **{"bos_token": "<|bos|>", "eos_token": "<|eos|>", **config})


def saved(tokenizer: tokenizers.Tokenizer, folder: Path, **config: Any) -> Path:
    """tokenizer.json and tokenizer_config.json in ``folder``."""
    folder.mkdir(exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **config}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def sentence_piece(folder: Path, name: str, **options: Any) -> Path:
    """A SentencePiece model."""
    source = folder / "text.txt"
    source.write_text("\n".join(text.replace("\n", " ")[:2000] for text in texts()), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(source), model_prefix=str(folder / name), minloglevel=2, num_threads=1,
        **{"vocab_size": 1500, "character_coverage": 0.98, **options},
    )  # fmt: skip
    return folder / f"{name}.model"


def llama_like(folder: Path) -> Path:
    """Llama 2's kind: BPE with byte fallback, text as it is, a space in front."""
    return sentence_piece(
        folder, "llama", model_type="bpe", byte_fallback=True, normalization_rule_name="identity",
        remove_extra_whitespaces=False, split_digits=True,
    )  # fmt: skip


def word_piece(folder: Path) -> Path:
    """BERT's vocab.txt."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = tokenizers.trainers.WordPieceTrainer(vocab_size=1200, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(texts(), trainer)
    return Path(tokenizer.model.save(str(folder))[0])


def ranks(folder: Path) -> Path:
    """TikTokenizer's JSON, of 600 tokens."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts(), trainer)
    by_id = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    character_of = {chr(byte): byte for byte in (*range(33, 127), *range(161, 173), *range(174, 256))}
    others = (byte for byte in range(256) if byte not in character_of.values())
    character_of |= {chr(256 + number): byte for number, byte in enumerate(list(others))}
    tokens = [bytes(character_of[letter] for letter in token) for token, _ in by_id]
    tokens = [bytes([byte]) for byte in range(256)] + [token for token in tokens if len(token) > 1]
    rows = [
        {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": token.decode(errors="replace")}
        for rank, token in enumerate(tokens)
    ]
    (folder / "ranks.json").write_text(json.dumps(rows))
    return folder / "ranks.json"


TIK = {"vocab_size": 630, "tiktoken_num_special_tokens": 30}


def every_kind(folder: Path) -> dict[str, TokenizerSettings]:
    """Settings for a tokenizer of each kind, by a name of ours."""
    byte_level(folder)
    llama = llama_like(folder)
    unigram = sentence_piece(folder, "unigram")
    hf = with_bos(folder / "hf")
    vocab = word_piece(folder)
    tik = ranks(folder)
    gpt2 = {"vocab_file": folder / "vocab.json", "merge_file": folder / "merges.txt"}
    return {
        "llama2": TokenizerSettings(type="Llama2Tokenizer", model=llama),
        "sentencepiece": TokenizerSettings(type="SentencePieceTokenizer", model=unigram),
        "gpt sentencepiece": TokenizerSettings(type="GPTSentencePieceTokenizer", model=llama),
        "hugging face": TokenizerSettings(type="HuggingFaceTokenizer", model=hf),
        "hugging face, no BOS": TokenizerSettings(
            type="HuggingFaceTokenizer", model=hf, include_special_tokens=False
        ),
        "hugging face, more tokens": TokenizerSettings(
            type="HuggingFaceTokenizer", model=hf, special_tokens=("<extra_id_7>", "<SPECIAL_9>")
        ),
        "gpt2": TokenizerSettings(type="GPT2BPETokenizer", **gpt2),
        "bert": TokenizerSettings(type="BertWordPieceLowerCase", vocab_file=vocab),
        "bert, case": TokenizerSettings(type="BertWordPieceCase", vocab_file=vocab),
        "tik v1": TokenizerSettings(type="TikTokenizer", model=tik, tiktoken_pattern="v1", **TIK),
        "tik v2": TokenizerSettings(type="TikTokenizer", model=tik, tiktoken_pattern="v2", **TIK),
        "tik, tokens": TokenizerSettings(
            type="TikTokenizer", model=tik, **TIK,
            special_tokens=("<s>", "</s>", "<unk>", "<mask>", "<pad>", "<cls>", "<sep>", "<|eos|>"),
        ),
        "deepseek": TokenizerSettings(type="DeepSeekV3Tokenizer", model=hf, extra_vocab_size=7),
    }  # fmt: skip
