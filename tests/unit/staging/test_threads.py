"""Many threads that call one function, and functions of their own, on the host."""

import gc
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import tracegraph
from tests.helpers.threads import SECONDS, collect_garbage, in_threads
from tracegraph.concurrency.weak_set import ConcurrentWeakSet
from tracegraph.ir.scalar import Axis

pytestmark = pytest.mark.usefixtures("each_host")

THREADS, CALLS = 16, 1000


def test_shared_and_own_functions() -> None:
    def three_times(x, y):
        return tracegraph.fori_loop(0, 3, lambda i, total: total + x * i, y)

    shared = tracegraph.jit(three_times, device="host")
    streams = [tracegraph.Stream("host") for _ in range(2)]

    def work(number: int) -> None:
        own = tracegraph.jit(lambda x: x * number - 1, device="host")
        x = np.arange(4.0) + number
        with tracegraph.stream(streams[number % 2]):
            for call in range(CALLS // 2):
                np.testing.assert_array_equal(own(x), x * number - 1)
                np.testing.assert_array_equal(shared(x, np.full(4, float(call))), 3 * x + call)

    in_threads(THREADS, work)
    stats = shared.stats()
    assert (stats["traces"], stats["builds"]) == (1, 1)
    assert stats["launches"] == THREADS * CALLS // 2


def test_expressions_made_by_several_threads_are_one() -> None:
    made: list[list[Axis]] = []

    def work(number: int) -> None:
        made.append([Axis.make(axis, 12_345) for axis in range(1000)])

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        in_threads(THREADS, work)
    finally:
        sys.setswitchinterval(interval)
    assert {len({id(axis) for axis in same}) for same in zip(*made, strict=True)} == {1}


def test_statistics_while_executables_come_and_go() -> None:
    def work(number: int) -> None:
        for call in range(20):
            own = tracegraph.jit(lambda x: x * number - 1, device="host")
            own(np.arange(float(1 + call % 3)))
            stats = tracegraph.memory_stats("host")
            assert stats["graphs"] > 0

    in_threads(THREADS, work)


class Item:
    """What can be referred to weakly."""


def test_the_living_may_grow_while_they_are_counted() -> None:
    living: ConcurrentWeakSet[Item] = ConcurrentWeakSet()
    kept = [Item(), Item()]
    for item in (*kept, kept[0]):
        living.add(item)
    for _seen in living:
        kept.append(Item())
        living.add(kept[-1])
    assert set(living) == set(kept)
    assert len(kept) == 4
    del kept[1:], item, _seen
    collect_garbage()
    assert list(living) == kept
    assert len(living) == 1


def test_garbage_is_collected_although_another_thread_collects() -> None:
    collecting = threading.Event()

    class Slow:
        def __init__(self) -> None:
            self.cycle = self

        def __del__(self) -> None:
            collecting.set()
            time.sleep(0.05)

    Slow()
    other = threading.Thread(target=gc.collect)
    other.start()
    assert collecting.wait(SECONDS)
    garbage = Item()
    garbage.cycle = garbage  # type: ignore[attr-defined]
    alive = weakref.ref(garbage)
    del garbage
    collect_garbage()
    assert alive() is None
    other.join(SECONDS)
