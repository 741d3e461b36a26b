"""Every rule is broken by a configuration of ``broken.txt``, healed by its nearest values, and Megatron agrees."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from conformance_cases import Arguments, Case
from conformance_ours import compiled_from, effective_of
from conformance_singles import BASES, WORLD_SIZE

from megawrap.config.sections.root import Config
from megawrap.hardware.table import gpu
from megawrap.megatron.oracle import Oracle
from megawrap.megatron.rules import RULES
from megawrap.megatron.rules.registry import Violation
from megawrap.megatron.surface import Target, resolve

ROWS = [line for line in Path(__file__).with_name("broken.txt").read_text().splitlines() if not line.startswith("#")]
NEWEST = "core-0.19.0"


def target_of(row: str) -> Target:
    """The release that a row names."""
    config = Config().megatron
    config.source, config.release = "release", row.partition("@")[2] or NEWEST
    return resolve(config)


def case_of(row: str, target: Target) -> Case:
    """The configuration of a row."""
    id, base, *changes = row.partition("@")[0].split()
    arguments: Arguments = dict(BASES[base])
    environment: dict[str, str | None] = {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
    world_size = WORLD_SIZE
    for name, _, word in (change.partition("=") for change in changes):
        if name.startswith("$"):
            environment[name[1:]] = word
        elif name == "world":
            world_size = int(word)
        elif name != "gpu":
            arguments[name] = yaml.safe_load(word)
    changed = {change.partition("=")[0] for change in changes}
    kept = {dest: value for dest, value in arguments.items()
            if value is not None and (dest in changed or target.surface.option(dest) is not None)}  # fmt: skip
    return Case(0, kept, world_size, environment, (id,))


def violations(row: str, case: Case, target: Target) -> Iterator[Violation]:
    """How the configuration breaks the rule of its row."""
    device = gpu("mi300x") if " gpu=mi300x" in row else None
    effective = effective_of(case, compiled_from(case.arguments, target), target, device)
    return RULES[row.split()[0]].broken(effective)


def healed_case(case: Case, dest: str, value: Any) -> Case:
    """The configuration with one of its nearest values; ``env.NAME`` is a variable."""
    arguments, environment = dict(case.arguments), dict(case.environment)
    if dest.startswith("env."):
        environment[dest.removeprefix("env.")] = value
    else:
        arguments[dest] = value
    kept = {name: one for name, one in arguments.items() if one is not None}
    return Case(0, kept, case.world_size, environment, ())


def test_every_rule_has_a_row():
    assert {row.split()[0] for row in ROWS} == set(RULES)


@pytest.mark.parametrize("base", BASES)
def test_the_bases_break_no_rule(base):
    target = target_of("")
    case = Case(0, BASES[base], WORLD_SIZE, {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}, ())
    effective = effective_of(case, compiled_from(case.arguments, target), target)
    assert [one for rule in RULES.values() for one in rule.broken(effective)] == []


@pytest.mark.parametrize("row", ROWS)
def test_the_rule_is_broken_and_its_nearest_values_heal_it(row):
    target = target_of(row)
    case = case_of(row, target)
    found = list(violations(row, case, target))
    assert found
    for one in found:
        assert one.message
        assert one.dests
        for dest, value in one.nearest:
            healed = healed_case(case, dest, value)
            left = [other.message for other in violations(row, healed, target)]
            assert one.message not in left, f"{dest}={value}"


@pytest.mark.train
def test_megatron_rejects_them_where_the_rules_say():
    with Oracle() as oracle:
        wrong = [said for row in ROWS if "@" not in row for said in disagreements(row, oracle)]
    assert wrong == []


def disagreements(row: str, oracle: Oracle) -> Iterator[str]:
    """Where the rule says that Megatron rejects the configuration of a row, and where it really does."""
    target = target_of(row)
    case, rule = case_of(row, target), RULES[row.split()[0]]
    argv = compiled_from(case.arguments, target).argv()
    verdict = oracle.ask(argv, case.world_size, case.environment)
    claims = rule.checked.partition(":")[0].split(", ")
    is_claimed = "nowhere" not in claims and rule.severity == "error"
    if is_claimed != (not verdict.is_accepted) or (is_claimed and verdict.stage not in claims):
        yield f"{row}: {rule.checked}; Megatron: {verdict.stage} {verdict.message}"
