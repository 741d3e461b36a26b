"""How words become a verb: one word, or a verb and its action."""

from __future__ import annotations

from types import ModuleType

import pytest

from megawrap.cli import verbs
from megawrap.cli.verbs import parse
from megawrap.cli.verbs.verb import Invocation, Verb, verbs_of
from megawrap.errors import ConfigError


def nothing(_: object) -> int:
    return 0


def module(name: str, **contents: object) -> ModuleType:
    made = ModuleType(f"package.{name}")
    vars(made).update(contents)
    return made


ACTIONS = (Verb("build", "Build it.", nothing, nothing), Verb("parse", "Parse it.", nothing, nothing))


def test_a_module_is_a_verb_or_has_actions_or_both():
    own = {"HELP": "Do it.", "configure": nothing, "run": nothing}
    assert [verb.name for verb in verbs_of(module("one", **own))] == ["one"]
    assert [verb.name for verb in verbs_of(module("two", ACTIONS=ACTIONS))] == ["two build", "two parse"]
    both = verbs_of(module("three", ACTIONS=ACTIONS, **own))
    assert [verb.name for verb in both] == ["three", "three build", "three parse"]


@pytest.fixture
def three(monkeypatch):
    """A verb that can be called alone and with an action."""
    own = {"HELP": "Do it.", "configure": nothing, "run": nothing}
    found = {verb.name: verb for verb in verbs_of(module("three", ACTIONS=ACTIONS, **own))}
    monkeypatch.setattr(verbs, "VERBS", {**verbs.VERBS, **found})


def words_of(invocation: Invocation) -> tuple[str, tuple[str, ...]]:
    return invocation.verb, invocation.overrides


def test_an_action_is_the_second_word(three):
    assert words_of(parse(["three", "build", "x"])) == ("three build", ("x",))
    assert words_of(parse(["three", "x=1", "build"])) == ("three", ("x=1", "build"))
    assert words_of(parse(["three"])) == ("three", ())
    assert words_of(parse(["three", "--json", "parse"])) == ("three", ("parse",))


def test_a_verb_that_only_has_actions_needs_one():
    with pytest.raises(ConfigError) as failed:
        parse(["data", "meerge", "a"])
    (finding,) = failed.value.findings
    assert (finding.id, finding.message) == ("MW007", "megawrap data meerge: there is no such action")
    assert finding.nearest[0] == "data merge"
    assert len(finding.nearest) == 5
