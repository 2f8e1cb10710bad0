"""Graph memory: the driver's pool for graphs that allocate their scratch at each launch.

The driver takes more from the device when a launch needs it, keeps it for later launches, and gives
it back when trimmed. Launches on one stream reuse the same memory; each stream has its own.

A launch must not find the device full: the driver (580.159, CUDA 13.0) then takes all memory that
there is and never gives it back, neither trimmed nor when the graph is gone. So room is made before
the launch.
"""

from __future__ import annotations

from functools import partial

from lowering.cuda.memory.heap import Heap
from lowering.cuda.streams.timeline import Timeline
from lowering.plan.nests.rounding import round_up
from tracegraph.concurrency.weak_set import ConcurrentWeakSet
from tracegraph.generated.dataclass import dataclass

GRANULE = 32 << 20
"""Bytes; the driver takes memory from the device in multiples of it."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Need:
    """What each launch of a graph on a stream allocates, for as long as its graph lives."""

    timeline: Timeline
    nbytes: int


class GraphMemoryPool:
    """The memory that launches on one device allocate. Threads may use it concurrently."""

    def __init__(self, heap: Heap) -> None:
        self._heap = heap
        self._driver = heap.timeline.driver
        self._living: ConcurrentWeakSet[Need] = ConcurrentWeakSet()
        self._needed = 0  # on all streams together; or more, if graphs are gone since

    def enter(self, timeline: Timeline, nbytes: int) -> Need:
        """What `make_room` is asked for, by a graph whose launches allocate `nbytes`."""
        need = Need(timeline, round_up(nbytes, GRANULE))
        self._living.add(need)
        self._needed = sum(self._by_stream().values())
        return need

    def make_room(self, need: Need) -> None:
        """Make sure that a launch finds its memory while launches on other streams run.

        Raises:
            OutOfMemoryError: the device has not enough, though all that is not in use was freed.
        """
        if self._driver.graph_memory() >= self._needed:
            return
        self._heap.relieved(partial(self._look, need), need.nbytes)

    def _by_stream(self) -> dict[Timeline, int]:
        largest: dict[Timeline, int] = {}
        for need in self._living:
            largest[need.timeline] = max(need.nbytes, largest.get(need.timeline, 0))
        return largest

    def _look(self, need: Need) -> None:
        """Raise MemoryError if there is room neither for all streams together nor for one alone.

        Memory that is kept for one stream may not serve another. So without room for all, the
        other streams are waited for, and their memory is given back.
        """
        largest = self._by_stream()
        self._needed = sum(largest.values())
        if self._missing(self._needed) <= 0:
            return
        for timeline in largest:
            if timeline is not need.timeline:
                timeline.settle()
        self._driver.trim()
        missing = self._missing(need.nbytes)
        if missing > 0:
            raise MemoryError(f"{missing:,} bytes of scratch are missing")

    def _missing(self, needed: int) -> int:
        return needed - self._driver.graph_memory() - self._driver.memory_info()[0]
