"""Words are read as the target's parser would, and what it refuses is listed."""

from __future__ import annotations

from importing_helpers import imported, told


def refused(text: str, release: str = "core-0.16.1") -> list[tuple[str, str]]:
    return [(one.words, one.reason) for one in imported(text, release).arguments.unplaced]


def test_an_unknown_flag_takes_its_words_with_it():
    (one,) = refused("--num-layers 2 --keep_fp8_weight_transpose_cache --nonsense 1 2 --bf16", "rocm-2026-02")
    assert one[0] == "--nonsense 1 2"
    assert one[1].startswith("rocm-2026-02 has no argument --nonsense")


def test_a_flag_of_another_release_says_since_when_and_which_release_has_all():
    one = imported("--num-layers 2 --attention-sink-k 0 --log-batch-size-to-tensorboard")
    assert [row.words for row in one.arguments.unplaced] == ["--attention-sink-k 0", "--log-batch-size-to-tensorboard"]
    assert "exists only in rocm's fork" in one.arguments.unplaced[0].reason
    assert one.arguments.having_all[0] == "rocm-2026-02"
    assert told(one) == [
        "--attention-sink-k: '0' -> None",
        "--log-batch-size-to-tensorboard: '--log-batch-size-to-tensorboard' -> None",
    ]


def test_no_release_is_named_when_the_target_has_every_flag_or_none_has():
    assert imported("--num-layers 2").arguments.having_all == ()
    assert imported("--num-layers 2 --no-such-flag-anywhere").arguments.having_all == ()


def test_values_that_the_parser_refuses():
    assert refused("--num-layers two --lr 1e-4 --tokenizer-type ${T} --hidden-size 64") == [
        ("--num-layers two", "Megatron's parser: argument --num-layers: invalid int value: 'two'"),
        ("--tokenizer-type ${T}", refused("--tokenizer-type ${T}")[0][1]),
    ]


def test_abbreviations_and_underscores_are_no_flags():
    found = refused("--num-layers 2 --hidden_size 64 --hidden 64")
    assert [words for words, _ in found] == ["--hidden_size 64", "--hidden 64"]
    assert "--hidden-size" in found[0][1]


def test_words_without_a_flag():
    assert refused("--num-layers 2 3 --bf16 true") == [
        ("3", "no flag takes it"),
        ("true", "no flag takes it"),
    ]


def test_a_flag_given_twice_is_said_when_the_words_differ():
    one = imported("--num-layers 2 --bf16 --bf16 --num-layers 4")
    assert [(row.words, row.reason, row.needed) for row in one.unplaced] == [
        ("--num-layers 2", "given again: --num-layers 4 wins", False)
    ]
    assert told(one) == []


def test_what_is_not_placed_is_a_warning_with_the_nearest_flag():
    (one,) = imported("--num-layer 2 --bf16").arguments.unplaced
    finding = one.finding()
    assert (finding.id, finding.severity, finding.keys) == ("MW038", "warning", ("--num-layer",))
    assert finding.nearest[0] == "--num-layers"
    assert finding.message.startswith("not placed: --num-layer 2: core-0.16.1 has no argument --num-layer")


def test_a_flag_without_its_value():
    assert refused("--bf16 --num-layers") == [
        ("--num-layers", "Megatron's parser: argument --num-layers: expected one argument")
    ]
