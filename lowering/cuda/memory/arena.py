"""Arenas: the scratch memory that all graphs of a stream share.

Launches on a stream follow one another, and none reads scratch of another. So one piece of memory,
as large as the largest need, serves them all.
"""

from __future__ import annotations

from lowering.cuda.interface import Allocation, Driver
from lowering.cuda.memory.heap import Heap
from lowering.cuda.memory.pool import size_class
from tracegraph.concurrency.weak_set import ConcurrentWeakSet


class Arenas:
    """The arenas in use on the stream of `driver`.

    A graph keeps the arena that it was built with. A graph that needs more gets a larger one, which
    later graphs share; the smaller is freed with the last graph built with it.
    """

    def __init__(self, heap: Heap, driver: Driver) -> None:
        self._heap = heap
        self._driver = driver
        self._living: ConcurrentWeakSet[Allocation] = ConcurrentWeakSet()

    def shared(self, nbytes: int) -> Allocation:
        """The largest arena, or a new one if it has less than `nbytes`."""
        largest = max(self._living, key=lambda arena: arena.nbytes, default=None)
        if largest is None or largest.nbytes < nbytes:
            largest = self._heap.allocate(size_class(nbytes), "arenas", self._driver)
            self._living.add(largest)
        return largest

    def private(self, nbytes: int) -> Allocation:
        """An arena for one graph alone, whose launch others may interrupt."""
        return self._heap.allocate(nbytes, "arenas", self._driver)
