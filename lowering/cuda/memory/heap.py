"""Heap: all device memory in use, and what is freed when an allocation fails."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol, TypeVar

from lowering.cuda.interface import LOOKED_AT, Allocation, Driver, Event, SharedAllocation
from lowering.cuda.memory.accounting import Holdings, Purpose
from lowering.cuda.streams.timeline import Timeline
from tracegraph.concurrency.weak_set import ConcurrentWeakSet
from tracegraph.errors import OutOfMemoryError
from tracegraph.staging import executable_cache

_T = TypeVar("_T")

DeferredFrees = list[tuple[Allocation, list[Event]]]
"""Memory that is free when the events with it have passed."""


class Clearable(Protocol):
    """A list of free memory."""

    def clear(self) -> None:
        """Free all."""


MOST_NAMED = 5
"""Functions that an OutOfMemoryError names."""


class Heap:
    """Allocates for all that runs on one device.

    `caches` are called to drop memory that is kept for later. Memory of a stream that was left goes
    to `deferred` while other streams use it, else to lists in `unused`. When memory is short, idle
    executables of jitted functions are closed, the least recently used first, and built again at
    their next use.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.caches: list[Callable[[], None]] = []
        self.deferred: DeferredFrees = []
        self.unused: ConcurrentWeakSet[Clearable] = ConcurrentWeakSet()
        self.holdings = Holdings()
        self._executables: ConcurrentWeakSet[Any] = ConcurrentWeakSet()

    @property
    def executables(self) -> list[Any]:
        """The executables that are alive."""
        return list(self._executables)

    def enter(self, executable: Any) -> None:
        """Count an executable among those alive, for as long as it is."""
        self._executables.add(executable)

    def allocate(self, nbytes: int, purpose: Purpose, driver: Driver | None = None) -> Allocation:
        """Memory of at least `nbytes` for the stream of `driver`, its contents undefined.

        Without a driver it is for the default stream.

        Raises:
            OutOfMemoryError: the device has not enough, though all that is not in use was freed.
        """
        driver = driver or self.timeline.driver
        driver.release_tied(LOOKED_AT)
        memory = self.relieved(partial(driver.allocate, nbytes), nbytes)
        self.holdings.enter(memory, purpose, nbytes)
        return memory

    def allocate_shared(self, nbytes: int, purpose: Purpose, driver: Driver) -> SharedAllocation:
        """As `allocate`, of memory that other processes reach."""
        memory = self.relieved(partial(driver.allocate_shared, nbytes), nbytes)
        self.holdings.enter(memory, purpose, nbytes)
        return memory

    def relieved(self, make: Callable[[], _T], nbytes: int = 0, what: str = "") -> _T:
        """Call `make`; while it raises MemoryError, free more and call it again.

        `nbytes` and `what` describe in messages what it allocates.

        Raises:
            OutOfMemoryError: all that is not in use was freed, and it was not enough.
        """
        try:
            return make()
        except OutOfMemoryError:
            raise  # all was freed
        except MemoryError as error:
            reason = str(error)
        driver = self.timeline.driver
        if nbytes <= driver.memory_info()[1]:
            for _ in self._relief():
                try:
                    return make()
                except OutOfMemoryError:
                    raise
                except MemoryError:
                    continue
        raise self._out_of_memory(nbytes, what and f"{what} ({reason})")

    def _out_of_memory(self, nbytes: int, what: str) -> OutOfMemoryError:
        driver = self.timeline.driver
        free, total = driver.memory_info()
        largest = sorted(
            ((sum(e.pieces().values()), e.plan.name) for e in self.executables), reverse=True
        )
        named = [(name, size) for size, name in largest[:MOST_NAMED]]
        device = f"cuda:{driver.ordinal}"
        held = {str(purpose): size for purpose, size in self.holdings.held.items()}
        held["graph memory"] = driver.graph_memory()
        return OutOfMemoryError(device, nbytes, free, total, held, named, what)

    def _relief(self) -> Iterator[None]:
        """Free more at each step, what is expensive to make again last."""
        gc.collect()
        self.trim()
        yield
        while executable_cache.evict(self.executables):
            self.trim()
            yield

    def release(self) -> None:
        """Free what came back from streams that were left, and is not in use."""
        self.timeline.driver.release_tied()
        for timeline in self.timeline.stopping.all():
            timeline.release_held()
        for memory in self.unused:
            memory.clear()
        for _ in range(len(self.deferred)):
            try:
                allocation, uses = self.deferred.pop(0)
            except IndexError:
                return
            if not all(passed() for passed in uses):
                self.deferred.append((allocation, uses))

    def trim(self) -> None:
        """Wait for all streams, and give all memory that is kept for later back."""
        for timeline in self.timeline.stopping.all():  # for deferred frees
            if timeline is self.timeline or not timeline.idle:
                timeline.settle()
        for drop in list(self.caches):
            drop()
        self.release()
        self.timeline.settle()
        self.timeline.driver.trim()
        self.timeline.driver.trim_host()
