"""Make the sample corpus and its tokenizer: ``python -m megawrap.preprocess.sample.make [corpus|tokenizer|all]``.

Both come out the same byte for byte wherever they are made (the tokenizer with the same sentencepiece release): the
random numbers are those of ``random.random()``, which Python keeps stable, and the tokenizer is trained in one thread.
"""

from __future__ import annotations

import io
import json
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CORPUS = HERE / "corpus.jsonl"
TOKENIZER = HERE / "tokenizer.model"
DOCUMENTS = 3600
VOCABULARY = 4096
SEED = 20_260_114
NAMES = ("Anna", "Ben", "Chidi", "Dilnoza", "Emil", "Fatima", "Goran", "Hana", "Ines", "Jun", "Kofi", "Lena", "Mateo")
UNSPACED = ("zh", "ja", "chat", "python", "c", "javascript")
"""Kinds whose sentences follow one another without a space."""

Grammar = dict[str, dict[str, Any]]


class Writer:
    """Expands the templates of ``grammar.json``: ``@slot@`` is replaced by a word of that slot."""

    def __init__(self, grammar: Grammar, seed: int) -> None:
        self.grammar = grammar
        self.random = random.Random(seed)
        self.kinds = [kind for kind, entry in grammar.items() for _ in range(entry["share"])]

    def below(self, bound: int) -> int:
        """A number from 0 to ``bound`` - 1."""
        return int(self.random.random() * bound)

    def pick(self, words: list[str] | tuple[str, ...]) -> str:
        """A word; the first ones of a list come more often, as words of a language do."""
        return words[min(self.below(len(words)), self.below(len(words)))]

    def word(self, kind: str, slot: str) -> str:
        """What stands for ``@slot@`` in a text of this kind."""
        if slot == "int":
            return str(self.below(10 ** (1 + self.below(4))))
        return self.pick(NAMES) if slot == "name" else self.pick(self.grammar[kind]["words"][slot])

    def sentence(self, kind: str) -> str:
        """One sentence, its first letter a capital unless it is code or chat."""
        template = self.pick(self.grammar[kind]["sentences"])
        text = re.sub(r"@(\w+?)@", lambda match: self.word(kind, match[1]), template)
        return text if kind in UNSPACED else text[0].upper() + text[1:]

    def text(self, kind: str) -> str:
        """One document: a few sentences, in paragraphs of four."""
        sentences = [self.sentence(kind) for _ in range(1 + self.below(7) + self.below(7))]
        space = "" if kind in UNSPACED else " "
        paragraphs = [space.join(sentences[start : start + 4]) for start in range(0, len(sentences), 4)]
        return ("" if space == "" and kind not in ("zh", "ja") else "\n\n").join(paragraphs)

    def document(self, number: int) -> bytes:
        """One line of JSON; every fifth spells other letters than ASCII as escapes."""
        kind = self.kinds[self.below(len(self.kinds))]
        value = {"id": number, "kind": kind, "text": self.text(kind)}
        return json.dumps(value, ensure_ascii=number % 5 == 0).encode() + b"\n"


def corpus() -> bytes:
    """The whole corpus, as it is stored."""
    writer = Writer(json.loads((HERE / "grammar.json").read_bytes()), SEED)
    return b"".join(writer.document(number) for number in range(DOCUMENTS))


def texts(corpus: bytes) -> Iterator[str]:
    """The text of each document."""
    return (json.loads(line)["text"] for line in corpus.splitlines())


def tokenizer(corpus: bytes) -> bytes:
    """A SentencePiece model of the Llama 2 kind, trained on ``corpus``.

    Trained from memory to memory, so that no path of the machine gets into the model.
    """
    from sentencepiece import SentencePieceTrainer

    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(list(texts(corpus))),
        model_writer=model,
        model_type="bpe",
        vocab_size=VOCABULARY,
        character_coverage=0.9995,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        add_dummy_prefix=True,
        allow_whitespace_only_pieces=True,
        split_digits=True,
        max_sentence_length=100_000,
        num_threads=1,
        minloglevel=2,
    )
    return model.getvalue()


def main(words: list[str]) -> int:
    """Write what is asked for; both without a word."""
    what = words[0] if words else "all"
    if what not in ("corpus", "tokenizer", "all") or len(words) > 1:
        print("usage: python -m megawrap.preprocess.sample.make [corpus|tokenizer|all]", file=sys.stderr)
        return 2
    if what != "tokenizer":
        CORPUS.write_bytes(corpus())
    if what != "corpus":
        TOKENIZER.write_bytes(tokenizer(CORPUS.read_bytes()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
