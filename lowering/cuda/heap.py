"""Heap: the device memory that is held, by purpose, and what is tried when there is not enough."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Literal, Protocol

from lowering.cuda.interface import Allocation, Driver, Event
from lowering.cuda.timeline import Timeline
from tracegraph import residents
from tracegraph.errors import OutOfMemoryError
from tracegraph.living import Living

Purpose = Literal["arrays", "arenas", "constants"]

Lent = list[tuple[Allocation, list[Event]]]
"""Memory that is free once the events with it have passed."""


class Clearable(Protocol):
    """A list of free memory."""

    def clear(self) -> None:
        """Free all."""


MOST_NAMED = 5
"""Functions that an OutOfMemoryError names."""


class Heap:
    """Allocates for all that runs on one device.

    `caches` are called to drop memory that is kept for later. What comes back when its stream is
    left goes to `lent`, as long as other streams read it, or to lists in `unused`. Idle executables
    of jitted functions are closed when memory is short, the least recently used first, and built
    again at their next use.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.caches: list[Callable[[], None]] = []
        self.lent: Lent = []
        self.unused: Living[Clearable] = Living()
        self.high_water = 0
        # Entries come and go in any thread, by single operations on a dict: no lock is needed.
        self._living: dict[weakref.ref[Allocation], tuple[Purpose, int]] = {}
        self._executables: Living[Any] = Living()

    @property
    def executables(self) -> list[Any]:
        """The executables that are alive."""
        return list(self._executables)

    def enter(self, executable: Any) -> None:
        """Count an executable among those alive, for as long as it is."""
        self._executables.add(executable)

    @property
    def held(self) -> dict[Purpose, int]:
        """Bytes in use by purpose."""
        total: dict[Purpose, int] = {"arrays": 0, "arenas": 0, "constants": 0}
        for purpose, nbytes in list(self._living.values()):
            total[purpose] += nbytes
        return total

    def allocate(self, nbytes: int, purpose: Purpose, driver: Driver | None = None) -> Allocation:
        """Memory of at least `nbytes` for the stream of `driver`, its contents undefined.

        Without a driver it is for the device's own stream.

        Raises:
            OutOfMemoryError: the device has not enough, though all that is not in use was freed.
        """
        driver = driver or self.timeline.driver
        driver.release_tied()
        try:
            memory = driver.allocate(nbytes)
        except MemoryError:
            memory = self._allocate_scarce(nbytes, driver)
        self._living[weakref.ref(memory, self._living.pop)] = purpose, nbytes
        self.high_water = max(self.high_water, sum(self.held.values()))
        return memory

    def _allocate_scarce(self, nbytes: int, driver: Driver) -> Allocation:
        if nbytes <= driver.memory_info()[1]:
            for _ in self._relief():
                try:
                    return driver.allocate(nbytes)
                except MemoryError:
                    continue
        free, total = driver.memory_info()
        largest = sorted(
            ((sum(e.pieces().values()), e.plan.name) for e in self.executables), reverse=True
        )
        named = [(name, size) for size, name in largest[:MOST_NAMED]]
        device = f"cuda:{driver.ordinal}"
        held = {str(purpose): size for purpose, size in self.held.items()}
        raise OutOfMemoryError(device, nbytes, free, total, held, named)

    def _relief(self) -> Iterator[None]:
        """Free more at each step, dearer things later."""
        gc.collect()
        self.trim()
        yield
        while residents.evict(self.executables):
            self.trim()
            yield

    def release(self) -> None:
        """Free what has come back and is not in use."""
        self.timeline.driver.release_tied()
        for timeline in self.timeline.stopping.all():
            timeline.let_go()
        for memory in self.unused:
            memory.clear()
        for _ in range(len(self.lent)):
            try:
                allocation, uses = self.lent.pop(0)
            except IndexError:
                return
            if not all(passed() for passed in uses):
                self.lent.append((allocation, uses))

    def trim(self) -> None:
        """Give all memory that is kept for later back to the device."""
        for timeline in self.timeline.stopping.all():  # what streams lend each other comes back
            if timeline is self.timeline or not timeline.idle:
                timeline.settle()
        for drop in list(self.caches):
            drop()
        self.release()
        self.timeline.settle()
        self.timeline.driver.trim()
