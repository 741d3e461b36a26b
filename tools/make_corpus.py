#!/usr/bin/env python3
"""A real corpus from Debian packages: prose in many languages, manual pages, dictionaries and code, as JSON lines.

    python tools/make_corpus.py corpus.jsonl --megabytes 40 [--cache FOLDER]

Needs apt-get and dpkg-deb; nothing is installed. Packages come from ``corpus_packages.json`` with the version that
apt offers, so corpora of two machines can differ; on one machine the same corpus comes out again. Files are cut into
documents of web-like sizes (log-normal, median 3 kB), some stay whole, and every fifth line is written in ASCII.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

LIST = Path(__file__).with_name("corpus_packages.json")
PACKAGES = json.loads(LIST.read_text())["packages"]
_TAG = re.compile(r"<(script|style)\b.*?</\1>|<[^>]+>", re.DOTALL | re.IGNORECASE)
_WHOLE = 0.03
_SHORTEST = 30


def main() -> int:
    """Write the corpus and say what it holds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--megabytes", type=float, default=40, metavar="N", help="size of the output (40)")
    parser.add_argument("--cache", type=Path, help="folder that keeps the packages")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cache = options.cache or Path(folder)
        cache.mkdir(parents=True, exist_ok=True)
        documents, size = write(options.output, options.megabytes * 1e6, cache)
    print(f"{options.output}: {documents:,} documents, {size / 1e6:.1f} MB")
    return 0


def write(output: Path, size: float, cache: Path) -> tuple[int, int]:
    """Documents of all packages, shuffled; what is there in excess is cut off. Number of documents and bytes."""
    draw = random.Random(20261130)
    share = size / sum(PACKAGES.values())
    texts = [text for name, weight in PACKAGES.items() for text in some(package(cache, name), weight * share, draw)]
    if (most := sum(len(text.encode()) for text in texts)) < 0.9 * size:
        sys.exit(f"{size / 1e6:.0f} MB were asked for and the packages hold {most / 1e6:.0f} MB: add some to {LIST}")
    draw.shuffle(texts)
    documents = written = 0
    with output.open("wb") as file:
        while documents < len(texts) and written < size:
            row = {"id": documents, "text": texts[documents]}
            written += file.write(json.dumps(row, ensure_ascii=documents % 5 == 0).encode() + b"\n")
            documents += 1
    return documents, written


def some(texts: Iterator[str], size: float, draw: random.Random) -> Iterator[str]:
    """Documents of about ``size`` bytes in all, cut from ``texts`` at line ends."""
    for text in texts:
        start = 0
        while start < len(text) and size > 0:
            length = len(text) if draw.random() < _WHOLE else max(80, int(draw.lognormvariate(8.0, 1.0)))
            end = text.find("\n", min(start + length, len(text)))
            document = text[start : end + 1 if end >= 0 else len(text)]
            start += len(document)
            if len(document) >= _SHORTEST:
                size -= len(document.encode())
                yield document


def package(cache: Path, name: str) -> Iterator[str]:
    """The text of all readable files of a package, in the order of their names."""
    found = sorted(cache.glob(f"{name}_*.deb"))
    if not found:
        subprocess.run(["apt-get", "download", "-qq", name], cwd=cache, check=True)
        found = sorted(cache.glob(f"{name}_*.deb"))
    files = {}
    unpack = ["dpkg-deb", "--fsys-tarfile", str(found[-1])]
    with (
        subprocess.Popen(unpack, stdout=subprocess.PIPE) as unpacking,
        tarfile.open(fileobj=unpacking.stdout, mode="r|") as archive,
    ):
        for member in archive:
            if member.isfile() and (content := archive.extractfile(member)):
                files[member.name] = content.read()
    for path in sorted(files):
        if text := readable(path, files[path]):
            yield text


def readable(path: str, data: bytes) -> str | None:
    """A file as text, without tags; None for what is no text in UTF-8."""
    if path.endswith(".gz"):
        path, data = path.removesuffix(".gz"), gzip.decompress(data)
    if b"\0" in data[:4096]:
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return _TAG.sub(" ", text) if path.endswith((".html", ".htm")) else text


if __name__ == "__main__":
    sys.exit(main())
