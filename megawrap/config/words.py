"""Overrides as typed. Hydra's grammar reads ``true``, ``1e3``, ``1_000`` and ``a,b`` as something else than text."""

from __future__ import annotations

from megawrap.config import schema


def as_text(override: str) -> str:
    """``override`` with its value in quotes, where the key takes text that Hydra would rewrite or refuse: every
    variable below ``env``, and lists with commas or NCCL's ``^`` where a key takes any text. What is null, quoted,
    escaped, an interpolation, a list or a mapping is Hydra's grammar already, and stays."""
    key, equals, value = override.partition("=")
    if not equals or key.startswith("~") or not value or _is_grammar(value):
        return override
    name = key.lstrip("+")
    return f"{key}='" + value.replace("'", "\\'") + "'" if _is_variable(name) or _is_listed(name, value) else override


def as_sweep(override: str) -> str:
    """``override`` for Hydra's --multirun, where commas between the values of a variable make a sweep of texts."""
    key, equals, value = override.partition("=")
    if not equals or not _is_variable(key.lstrip("+")) or any(mark in value for mark in "()[]{}'\"\\"):
        return override
    texts = (as_text(f"{key}={one}").partition("=")[2] for one in value.split(","))
    return f"{'' if key.startswith('+') else '++'}{key}={','.join(texts)}"


def _is_grammar(value: str) -> bool:
    return value.lower() == "null" or value[0] in "'\"[{" or "${" in value or "\\" in value


def _is_variable(key: str) -> bool:
    return key.startswith("env.")


def _is_listed(key: str, value: str) -> bool:
    field = schema.fields().get(key)
    takes_any_text = field is not None and field.type in ("str", "str | None") and not field.choices
    return takes_any_text and ("," in value or value.startswith("^"))
