"""Bookkeeping: places are right in whatever order chunks are done, and the first bad line wins."""

from __future__ import annotations

import random

import pytest

from megawrap.preprocess import schedule as module
from megawrap.preprocess.messages import Chunk, Rejected, Sizes
from megawrap.preprocess.schedule import Schedule


def make(count: int, targets: int = 1) -> Schedule:
    numbers = range(count * targets)
    return Schedule(iter([Chunk(number, number // count, number, number + 1) for number in numbers]), targets)


@pytest.mark.parametrize("seed", range(5))
def test_places_do_not_depend_on_the_order_of_completion(seed):
    draw = random.Random(seed)
    schedule = make(20, targets=2)
    sizes = [Sizes(draw.randrange(9), draw.randrange(4), draw.randrange(3), draw.randrange(2)) for _ in range(40)]
    out, places = [], {}
    while not schedule.done:
        while chunk := schedule.chunk():
            out.append(chunk)
        chunk = out.pop(draw.randrange(len(out)))
        for owner, write in schedule.measured(chunk.number, chunk, sizes[chunk.number]):
            assert owner == write.chunk.number
            places[write.chunk.number] = write.place
            schedule.written(write.chunk)
    for number in range(40):
        assert places[number] == sum(sizes[number // 20 * 20 : number], Sizes())
    assert schedule.totals == [sum(sizes[:20], Sizes()), sum(sizes[20:], Sizes())]


def test_no_more_chunks_wait_in_memory_than_allowed(monkeypatch):
    monkeypatch.setattr(module, "AHEAD", 3)
    schedule = make(10)
    first, second, third = schedule.chunk(), schedule.chunk(), schedule.chunk()
    assert first and second and third and schedule.chunk() is None
    assert schedule.measured(0, second, Sizes(1)) == []
    assert schedule.chunk() is None, "the place of the second depends on the first"
    assert len(schedule.measured(0, first, Sizes(1))) == 2
    assert schedule.chunk() is not None


def test_the_first_bad_line_of_the_input_wins():
    schedule = make(10)
    chunks = [schedule.chunk() for _ in range(4)]
    schedule.reject(Rejected(chunks[2], 2, "late"))
    assert schedule.chunk() is None, "nothing is begun any more"
    assert not schedule.done, "an earlier line may be bad too"
    schedule.measured(0, chunks[0], Sizes(1))
    schedule.reject(Rejected(chunks[1], 1, "early"))
    assert schedule.done, "a chunk behind it need not be waited for"
    assert schedule.first_rejected.reason == "early"


def test_it_is_done_when_all_is_written():
    schedule = make(1)
    chunk = schedule.chunk()
    assert schedule.chunk() is None and not schedule.done
    schedule.measured(0, chunk, Sizes(1))
    assert not schedule.done
    schedule.written(chunk)
    assert schedule.done
