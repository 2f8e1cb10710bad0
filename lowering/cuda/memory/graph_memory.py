"""Graph memory: what the driver keeps for the launches of graphs that allocate their scratch.

It takes more from the device when a launch finds too little, keeps it for later launches, and gives
it back when it is trimmed. Launches on one stream use the same memory in turn, those on several
streams each their own.

A launch that finds too little on the device, too, must not happen: the driver (580.159, CUDA 13.0)
then takes all that there is and never gives it back, neither trimmed nor when the graph is gone. So
room is made before.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from lowering.cuda.memory.heap import Heap
from lowering.cuda.streams.timeline import Timeline
from lowering.plan.rounding import round_up
from tracegraph.weak_set import ConcurrentWeakSet

GRANULE = 32 << 20
"""The driver takes memory from the device in multiples of as many bytes."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Need:
    """What each launch of a graph on a stream allocates, for as long as its graph lives."""

    timeline: Timeline
    nbytes: int


class GraphMemoryPool:
    """The memory of one device that the launches of graphs allocate. Threads may use it at will."""

    def __init__(self, heap: Heap) -> None:
        self._heap = heap
        self._driver = heap.timeline.driver
        self._living: ConcurrentWeakSet[Need] = ConcurrentWeakSet()
        self._needed = 0  # on all streams at a time; or more, if graphs have gone since

    def enter(self, timeline: Timeline, nbytes: int) -> Need:
        """What `make_room` is asked for, by a graph whose launches allocate `nbytes`."""
        need = Need(timeline, round_up(nbytes, GRANULE))
        self._living.add(need)
        self._needed = sum(self._by_stream().values())
        return need

    def make_room(self, need: Need) -> None:
        """See that a launch finds its memory, while launches on other streams run.

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
        """Raise MemoryError if there is no room for all streams at a time, nor for one alone.

        What is kept for one stream may not serve another one. So if there is none for all, the
        others are waited for, and what is kept for them is given back.
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
