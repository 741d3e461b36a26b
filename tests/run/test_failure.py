"""Who failed first, from the table that torchrun prints."""

from __future__ import annotations

from megawrap.run.failure import Failure, FailureReader, root_cause

TABLE = """\
============================================================
megawrap.megatron.cpu FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-29_23:00:02
  host      : node7
  rank      : 0 (local_rank: 0)
  exitcode  : 1 (pid: 11)
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-29_23:00:01
  host      : node9
  rank      : 3 (local_rank: 1)
  exitcode  : -9 (pid: 12)
  error_file: <N/A>
  traceback : Signal 9 (SIGKILL) received by PID 12
============================================================""".splitlines()


def test_the_root_cause_and_not_the_first_of_the_list():
    assert root_cause(TABLE) == Failure(rank=3, host="node9", exit_code=-9)


def test_words_for_a_signal_and_for_an_exit_code():
    assert Failure(3, None, -9).what == "was ended by SIGKILL"
    assert Failure(3, None, 1).what == "failed with exit code 1"


def test_no_table_no_failure():
    assert root_cause(["everything is fine"]) is None


def test_last_lines_begin_at_the_last_traceback():
    reader = FailureReader()
    for line in ["step 1", "Traceback (most recent call last):", '  File "x"', "ValueError: no"]:
        reader.feed(3, line)
    for line in TABLE:
        reader.feed(None, line)
    assert reader.failure == Failure(3, "node9", -9)
    assert reader.last_lines(3) == ["Traceback (most recent call last):", '  File "x"', "ValueError: no"]
