"""Whether the output will fit on the disk, before it is begun."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from megawrap.errors import Finding
from megawrap.preprocess.sampling import Sample
from megawrap.preprocess.staging import existing_folder
from megawrap.preprocess.tokenizers import BadText, Tokenizer
from megawrap.preprocess.tokenizers.protocol import dtype_for

# The sample may be denser than the rest, and a run that would just have fitted must not be refused.
_SLACK = 0.7


def needed(sample: Sample, tokenizer: Tokenizer) -> int:
    """Bytes that the tokens of the whole input will take, judged by a sample of it."""
    if not sample.text_bytes:
        return 0
    try:
        tokens = int(tokenizer.encode_batch(sample.texts).lengths.sum())
    except BadText:
        return 0
    return sample.total_bytes * tokens // sample.text_bytes * np.dtype(dtype_for(tokenizer.vocab_size)).itemsize


def too_little(prefix: str, expected: int, there: int) -> Finding | None:
    """Why ``expected`` bytes do not fit where ``prefix`` is; ``there`` is what an earlier run has written of them."""
    folder = existing_folder(prefix)
    free = shutil.disk_usage(folder).free
    if expected * _SLACK - there <= free:
        return None
    figures = f"about {_human(expected)} are needed, and {_human(free)} are free in {folder}"
    return Finding(id="MW623", message=f"--output-prefix {prefix}: {figures}", keys=("--output-prefix",))


def written(folder: Path) -> int:
    """Bytes on the disk in the files of a folder, which need not exist."""
    return sum(file.stat().st_blocks * 512 for file in folder.glob("*")) if folder.is_dir() else 0


def _human(size: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.4g} TB"
