"""Bookkeeping: places are right in whatever order chunks are done, and lines are counted."""

from __future__ import annotations

import random

import pytest

from megawrap.preprocess import schedule as module
from megawrap.preprocess.messages import Chunk, Encoded, Sizes
from megawrap.preprocess.schedule import Schedule


def make(count: int, targets: int = 1, sources: int = 1) -> Schedule:
    chunks = [Chunk(number, number * sources // count, number, number + 1, 1) for number in range(count)]
    return Schedule(iter(chunks), targets)


@pytest.mark.parametrize("seed", range(5))
def test_places_do_not_depend_on_the_order_of_completion(seed):
    draw = random.Random(seed)
    schedule = make(40, targets=2)
    sizes = [tuple(Sizes(draw.randrange(9), draw.randrange(4), draw.randrange(3)) for _ in "ab") for _ in range(40)]
    out, places = [], {}
    while not schedule.done:
        while chunk := schedule.chunk():
            out.append(chunk)
        chunk = out.pop(draw.randrange(len(out)))
        for placed in schedule.measured(chunk.number, Encoded(chunk, sizes[chunk.number])):
            assert placed.worker == placed.chunk.number
            places[placed.chunk.number] = placed.places
            schedule.written(placed.chunk)
    for number in range(40):
        assert places[number] == tuple(sum((size[key] for size in sizes[:number]), Sizes()) for key in (0, 1))
    assert schedule.totals == tuple(sum((size[key] for size in sizes), Sizes()) for key in (0, 1))


def test_no_more_chunks_wait_in_memory_than_allowed(monkeypatch):
    monkeypatch.setattr(module, "AHEAD", 3)
    schedule = make(10)
    first, second, third = schedule.chunk(), schedule.chunk(), schedule.chunk()
    assert first and second and third and schedule.chunk() is None
    assert schedule.measured(0, Encoded(second, (Sizes(1),))) == []
    assert schedule.chunk() is None, "the place of the second depends on the first"
    assert len(schedule.measured(0, Encoded(first, (Sizes(1),)))) == 2
    assert schedule.chunk() is not None


def test_lines_are_counted_in_each_source_from_one():
    schedule = make(4, sources=2)
    first_lines = []
    while chunk := schedule.chunk():
        sizes = Sizes(documents=5, blank=2, rejected=1)
        first_lines += [placed.first_line for placed in schedule.measured(0, Encoded(chunk, (sizes,)))]
    assert first_lines == [1, 9, 1, 9]


def test_it_is_done_when_all_is_written():
    schedule = make(1)
    chunk = schedule.chunk()
    assert schedule.chunk() is None and not schedule.done
    schedule.measured(0, Encoded(chunk, (Sizes(1),)))
    assert not schedule.done
    schedule.written(chunk)
    assert schedule.done
