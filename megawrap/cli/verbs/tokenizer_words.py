"""The words of `megawrap tokenizer`: a tokenizer by overrides or by its file, its family, texts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from megawrap.cli.verbs.data_words import composed, misused
from megawrap.cli.verbs.verb import Invocation
from megawrap.errors import ConfigError, Finding, nearest

if TYPE_CHECKING:
    from megawrap.config.sections.inputs import Tokenizer as Section
    from megawrap.preprocess.golden import Family
    from megawrap.preprocess.settings import TokenizerSettings


def settings_of(section: Section) -> TokenizerSettings:
    """The settings of preprocessing that a section of the configuration means; its type is set."""
    from megawrap.preprocess.settings import TokenizerSettings

    shared = {field.name for field in dataclasses.fields(TokenizerSettings)}
    shared &= {field.name for field in dataclasses.fields(section)}
    values = {name: getattr(section, name) for name in shared}
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    files = {name: Path(values[name]) for name in ("model", "vocab_file", "merge_file") if values[name] is not None}
    return TokenizerSettings(**{**values, **files})


def tokenizer(invocation: Invocation, words: Sequence[str]) -> TokenizerSettings | None:
    """The tokenizer that a path or overrides name; None where neither does.

    Raises:
        ConfigError: there is none at the path, or the configuration is wrong.
    """
    paths = [word for word in words if "=" not in word or Path(word).exists()]
    if len(paths) > 1 or (paths and len(words) > 1):
        raise misused(invocation, f"a path, or overrides, is one tokenizer, and there are more: {' '.join(words)}")
    if paths:
        return by_path(Path(paths[0]))
    section = composed(invocation, words).tokenizer
    # The default of the configuration, which reads no text.
    is_default = section.type in (None, "NullTokenizer") and section.vocab_size is None
    return None if is_default else settings_of(section)


def by_path(path: Path) -> TokenizerSettings:
    """The tokenizer in a file or a folder, of the type that its name tells.

    Raises:
        ConfigError: the name tells nothing.
    """
    from megawrap.preprocess.settings import TokenizerSettings

    if path.is_dir() and not (path / "tokenizer.json").is_file():
        vocab, merges, words = (path / name for name in ("vocab.json", "merges.txt", "vocab.txt"))
        if vocab.is_file() and merges.is_file():
            return TokenizerSettings(type="GPT2BPETokenizer", vocab_file=vocab, merge_file=merges)
        if words.is_file():
            return TokenizerSettings(type="BertWordPieceLowerCase", vocab_file=words)
        if (path / "tokenizer.model").is_file():
            return TokenizerSettings(type="Llama2Tokenizer", model=path / "tokenizer.model")
    if path.suffix == ".model" or ".model." in path.name:
        return TokenizerSettings(type="Llama2Tokenizer", model=path)
    if path.name == "vocab.txt":
        return TokenizerSettings(type="BertWordPieceLowerCase", vocab_file=path)
    # A folder, a tokenizer.json or a name on the hub: what is wrong with others is told when it is read.
    return TokenizerSettings(type="HuggingFaceTokenizer", model=path)


def family(invocation: Invocation, words: Sequence[str]) -> Family:
    """The family that ``--family``, the model's preset or the choice of a tokenizer names.

    Raises:
        ConfigError: none does, or there are no vectors of it.
    """
    from megawrap.preprocess.golden import families, family_of

    named = invocation.options.family
    if named is None:
        chosen = (word.partition("=")[2] for word in words if word.startswith("tokenizer="))
        models = [word for word in words if word.startswith("model=")]
        named = next(chosen, None) or (composed(invocation, models).model.tokenizer if models else None)
    found = family_of(named)
    if found is None:
        what = "which family is it to be?" if named is None else f"there are no golden vectors of {named}"
        known = list(families())
        message = f"{what} --family {'|'.join(known)}, or a model=PRESET that uses one of them"
        close = nearest(named, known) if named else ()
        raise ConfigError(Finding(id="MW680", keys=("--family",), message=message, nearest=close))
    return found


def texts(invocation: Invocation) -> list[str]:
    """What ``--text`` and ``--file`` hold: a JSON line gives its ``text``, any other line itself.

    Raises:
        ConfigError: the file cannot be read.
    """
    found = list(invocation.options.text or ())
    if invocation.options.file:
        found += _lines(Path(invocation.options.file))
    return found


def _lines(path: Path) -> Iterator[str]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            Finding(id="MW680", keys=("--file",), message=f"{path} cannot be read: {error.strerror}")
        ) from None
    for line in content.decode(errors="replace").split("\n"):
        yield _text(line)


def _text(line: str) -> str:
    if line.startswith("{"):
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            return line
        if isinstance(value, dict) and isinstance(value.get("text"), str):
            return str(value["text"])
    return line
