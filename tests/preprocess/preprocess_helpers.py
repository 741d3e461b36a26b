"""The dataset format and Megatron's rules, written down a second time as plainly as can be; and the command."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import megawrap
from megawrap.preprocess.sample.make import TOKENIZER
from megawrap.preprocess.settings import TokenizerSettings

ROOT = Path(megawrap.__file__).parents[1]
EOD = 2
SP = TokenizerSettings(type="Llama2Tokenizer", model=TOKENIZER)

NASTY = (
    "",
    " ",
    "  two  spaces  ",
    "\n\n\tline\r\nends\r",
    "zero\u200bwidth \u200d joiner \ufeff mark",
    "nul \x00 and control \x07\x1b",
    "<s> </s> <unk> <0x41> ▁",
    "中文，标点。「日本語」　全角",
    "👩‍👩‍👧‍👦 🇩🇪 👍🏽 e\u0301 \U0010fffd",
    "a" * 5000,
    "0123456789 3.14 1e-9",
    "line\u2028separator\u2029paragraph\x85next",
)


def lines(values: Iterable[Any]) -> bytes:
    """JSON lines; a string or a list stands for an object with it under ``text``."""
    rows = (value if isinstance(value, dict) else {"text": value} for value in values)
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def tokenized(texts: Iterable[str | list[str]], encode: Callable[[str], list[int]], eod: int | None) -> list[list[Any]]:
    """Documents as lists of sequences of ids, by the rules of Megatron's tool."""
    documents = []
    for text in texts:
        sequences = [encode(one) for one in ([text] if isinstance(text, str) else text)]
        sequences = [list(ids) for ids in sequences if len(ids)]
        if sequences and eod is not None:
            sequences[-1].append(eod)
        documents.append(sequences)
    return documents


def expected_files(documents: list[list[Any]], code: int) -> tuple[bytes, bytes]:
    """The bytes of .bin and .idx for documents as lists of sequences of ids."""
    kind, itemsize = {8: ("H", 2), 4: ("i", 4)}[code]
    sequences = [ids for document in documents for ids in document]
    data = b"".join(struct.pack(f"<{len(ids)}{kind}", *ids) for ids in sequences)
    offset, offsets = 0, []
    for ids in sequences:
        offsets.append(offset)
        offset += itemsize * len(ids)
    bounds = [0]
    for document in documents:
        bounds.append(bounds[-1] + len(document))
    index = b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, code, len(sequences), len(bounds))
    index += struct.pack(f"<{len(sequences)}i", *map(len, sequences))
    index += struct.pack(f"<{len(offsets)}q", *offsets) + struct.pack(f"<{len(bounds)}q", *bounds)
    return data, index


def written(prefix: str) -> tuple[bytes, bytes]:
    """The bytes of .bin and .idx."""
    return Path(f"{prefix}.bin").read_bytes(), Path(f"{prefix}.idx").read_bytes()


def command(*words: object) -> list[str]:
    """``python -m megawrap.preprocess`` with the sample tokenizer."""
    start = [sys.executable, "-m", "megawrap.preprocess", "--tokenizer-type", "Llama2Tokenizer"]
    return [*start, "--tokenizer-model", str(TOKENIZER), *map(str, words)]


def run_command(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        command(*words), check=False, cwd=ROOT, capture_output=True, text=True, timeout=120, **options
    )


def names(folder: Path) -> list[str]:
    """What is in a folder, hidden files too."""
    return sorted(path.name for path in folder.iterdir())
