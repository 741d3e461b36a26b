"""Whether a tokenizer is the one it is taken for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from megawrap.errors import Finding
from megawrap.preprocess.golden import Family
from megawrap.preprocess.golden.diagnose import Contradiction, diagnose
from megawrap.preprocess.settings import TokenizerSettings
from megawrap.preprocess.tokenizers import Tokenizer

_IDS = {
    "BOS added": "MW681",
    "BOS missing": "MW681",
    "EOS added": "MW681",
    "leading space": "MW682",
    "normalisation": "MW683",
    "vocabulary": "MW684",
    "merges": "MW685",
}
_KEYS = ("tokenizer.model", "tokenizer.type")


def check(family: Family, settings: TokenizerSettings, tokenizer: Tokenizer) -> list[Finding]:
    """The contradictions between a tokenizer and its family; a warning is none."""
    return [
        *(_finding(family, one) for one in diagnose(family, tokenizer, bos_wanted=bos_wanted(family, settings))),
        *_size(family, tokenizer),
        *_special(family, tokenizer),
        *_doubt(tokenizer),
    ]


def bos_wanted(family: Family, settings: TokenizerSettings) -> bool:
    """Whether Megatron writes the family's BOS before every text with these settings."""
    if settings.type == "Llama2Tokenizer":
        return bool(settings.legacy)
    template = settings.type in ("HuggingFaceTokenizer", "DeepSeekV2Tokenizer", "DeepSeekV3Tokenizer")
    return template and family.template_adds_bos and settings.include_special_tokens is not False


def compare_ids(family: Family, text: str, ids: Sequence[int], wanted: Sequence[int]) -> Finding | None:
    """What is wrong with a list of ids that is said to be that of ``text``."""
    given, wanted = list(ids), list(wanted)
    if given == wanted:
        return None
    bos, eos = family.special.get("bos"), family.special.get("eos")
    ends = [(bos, [bos.id, *wanted], "the first id is BOS")] if bos else []
    ends += [(eos, [*wanted, eos.id], "the last id is EOS")] if eos else []
    ends += [(bos, [bos.id, *wanted, eos.id], "the first id is BOS and the last EOS")] if bos and eos else []
    what = next((says for _, whole, says in ends if whole == given), None)
    shown = f"{text!r} is {' '.join(map(str, wanted))} in {family.name}, and not {' '.join(map(str, given))}"
    id = "MW681" if what else "MW686"
    return Finding(id=id, keys=("--ids",), message=f"{shown}: {what}" if what else shown)


def _finding(family: Family, one: Contradiction) -> Finding:
    count = f" ({one.texts} of {len(family.cases)} texts)" if one.texts else ""
    return Finding(id=_IDS[one.kind], keys=_KEYS, message=f"not {family.name}: {one.message}{count}")


def _size(family: Family, tokenizer: Tokenizer) -> Iterator[Finding]:
    size, known = tokenizer.vocab_size, family.vocab_sizes
    if size in known:
        return
    sizes = " or ".join(f"{one:,}" for one in known)
    if size > min(known):
        message = f"{size:,} ids, and {family.name} has {sizes}: tokens were added"
        yield Finding(id="MW687", severity="warning", keys=_KEYS, message=message)
    else:
        message = f"not {family.name}: {size:,} ids, and it has {sizes}"
        yield Finding(id="MW687", keys=_KEYS, message=message)


def _special(family: Family, tokenizer: Tokenizer) -> Iterator[Finding]:
    for role, special in family.special.items():
        actual = tokenizer.piece(special.id) if special.id < tokenizer.vocab_size else None
        if actual != special.token:
            has = "beyond the vocabulary" if actual is None else f"{actual!r} here"
            message = f"not {family.name}: its {role}, id {special.id}, is {special.token}, and {has}"
            yield Finding(id="MW688", keys=_KEYS, message=message)
    eos = family.special["eos"]
    if tokenizer.eod != eos.id:
        has = "none" if tokenizer.eod is None else f"id {tokenizer.eod} ({tokenizer.piece(tokenizer.eod)})"
        message = f"documents end with {has} here, and the base models of {family.name} with id {eos.id} ({eos.token})"
        yield Finding(id="MW688", severity="warning", keys=_KEYS, message=message)


def _doubt(tokenizer: Tokenizer) -> Iterator[Finding]:
    doubt = getattr(tokenizer, "doubt", None)
    if doubt:
        yield Finding(id="MW689", severity="warning", keys=_KEYS, message=doubt)
