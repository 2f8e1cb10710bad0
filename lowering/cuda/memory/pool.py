"""Device memory of calls: free lists by size, and the buffers that calls return.

Each stream has a pool. Memory that comes back may still be in use by work on that stream; its next
user is ordered behind that work, so nothing waits. Memory that other streams used too is free when
they have passed those uses.
"""

from __future__ import annotations

import sys
from functools import cache, cached_property
from typing import Any, Self

import numpy as np

from lowering.cuda.interface import Allocation, Event
from lowering.cuda.memory.cross_stream import CrossStreamUse, FreeList
from lowering.cuda.memory.heap import Heap
from lowering.cuda.streams.in_flight import InFlightLaunch
from lowering.cuda.streams.timeline import Timeline
from lowering.plan.nests.rounding import power_of_two, round_up
from tracegraph.arrays.borrowed_memory import LEGACY_STREAM
from tracegraph.ir.types import ArrayType

KEPT_SHARE = 1 / 4
"""The part of a device's memory that may be kept free: in each size class, and, when more is
allocated, in all of them together."""


class PooledMemory:
    """Memory from a pool, which gets it back when this object is collected."""

    __slots__ = ("_allocation", "_free", "pointer")

    _allocation: Allocation
    _free: FreeList | CrossStreamUse
    pointer: int

    @classmethod
    def of(cls, allocation: Allocation, free: FreeList) -> Self:
        """Memory, and the list that it belongs to.

        There is no constructor: without one, Python makes an object in 65 ns instead of 90, and
        calls make one for each result.
        """
        pooled = cls()
        pooled._allocation = allocation
        pooled._free = free
        pooled.pointer = allocation.pointer
        return pooled

    def __del__(self) -> None:
        # Runs in any thread and at any point: appending is atomic and takes no lock.
        try:
            self._free.append(self._allocation)
        except AttributeError:
            return  # an interrupt came before it was given its memory


class DevicePool:
    """Free lists by size class; what is freed is kept for the next call of a like size."""

    def __init__(self, heap: Heap, timeline: Timeline | None = None) -> None:
        self.timeline = timeline or heap.timeline
        self.lists: dict[int, FreeList] = {}
        """What is free, by size class."""
        self._heap = heap
        heap.caches.append(self._drop)

    def take(self, nbytes: int) -> PooledMemory:
        """Memory of at least `nbytes`, its contents undefined.

        Raises:
            OutOfMemoryError: the device has not enough, though all that is idle was given back.
        """
        return PooledMemory.of(*self.piece(size_class(nbytes)))

    def buffer(self, type_: ArrayType) -> CudaBuffer:
        """An array whose elements are undefined; raises what `take` does."""
        piece = self.piece(size_class(type_.nbytes))
        return CudaBuffer.made(*piece, interned(type_), self.timeline)

    def piece(self, size: int) -> tuple[Allocation, FreeList]:
        """Memory of a size class, and the list that it belongs to; raises what `take` does."""
        try:
            free = self.lists[size]
            return free.pop(), free
        except (KeyError, IndexError):
            return self.allocate(size)

    def allocate(self, size: int) -> tuple[Allocation, FreeList]:
        """New memory of a size class, and the list that it belongs to; raises what `take` does."""
        free = self.list_of(size)
        reclaimed = free.reclaim()
        if reclaimed is not None:
            return reclaimed, free
        if self.free_bytes > self._most_bytes:
            self._drop()
        return self._heap.allocate(size, "arrays", self.timeline.driver), free

    def list_of(self, size: int) -> FreeList:
        """The list of a size class, the same one from now on."""
        found = self.lists.get(size)
        if found is None:
            # Memory is freed in the order of the default stream: other streams keep all of it.
            most = max(int(self._most_bytes // size), 1) if self._is_default else sys.maxsize
            found = self.lists.setdefault(size, FreeList(most))
        return found

    @cached_property
    def _most_bytes(self) -> float:
        return self._heap.timeline.driver.memory_info()[1] * KEPT_SHARE

    def close(self) -> None:
        """Keep nothing for later: the heap frees what comes back from now on.

        A second close does nothing.
        """
        if self._drop not in self._heap.caches:
            return
        self._heap.caches.remove(self._drop)
        self._drop()
        for free in list(self.lists.values()):
            self._heap.deferred += free.deferred
            free.deferred = self._heap.deferred
            self._heap.unused.add(free)

    @property
    def _is_default(self) -> bool:
        return self.timeline is self._heap.timeline

    def _drop(self) -> None:
        """Free what is kept: on the default stream in its order, on others after a wait."""
        if not self._is_default and not self.timeline.idle:
            self.timeline.settle()
        self.reclaim()
        for free in list(self.lists.values()):
            free.clear()

    def reclaim(self) -> None:
        """Move deferred pieces that are free by now to the free lists."""
        for free in list(self.lists.values()):
            for _ in range(len(free.deferred)):
                reclaimed = free.reclaim()
                if reclaimed is not None:
                    free.append(reclaimed)

    @property
    def free_bytes(self) -> int:
        """Bytes that are kept and not in use."""
        return sum(size * len(free) for size, free in list(self.lists.items()))


@cache
def size_class(nbytes: int) -> int:
    """The size that a request is rounded up to: four classes per power of two, at least 256 bytes.

    >>> size_class(1), size_class(1000), size_class(5000)
    (256, 1024, 5120)
    """
    step = max(256, power_of_two(nbytes) >> 3)
    return round_up(max(nbytes, 1), step)


@cache
def interned(type_: ArrayType) -> ArrayType:
    """One object for equal types: calls compare by identity first."""
    return type_


class CudaBuffer(PooledMemory):
    """A contiguous row-major array in device memory, as `lowering.backends.DeviceBuffer` has it.

    `pending` is the launch with loops that it waits for, if any. If that is stopped, every use
    raises StoppedError.
    """

    __slots__ = ("__weakref__", "pending", "timeline", "type")

    pending: InFlightLaunch | None
    timeline: Timeline
    type: ArrayType

    @classmethod
    def made(
        cls, allocation: Allocation, free: FreeList, type_: ArrayType, timeline: Timeline
    ) -> Self:
        """A new array of these pieces."""
        buffer = cls.of(allocation, free)
        buffer.pending = None
        buffer.timeline = timeline
        buffer.type = type_
        return buffer

    @staticmethod
    def made_text(
        buffer: str, allocation: str, pointer: str, free: str, type_: str, timeline: str
    ) -> tuple[str, ...]:
        """`made` as lines of a generated function: each name is a variable.

        The allocation's `pointer` is one as well, because it is passed to the launch.
        """
        return (
            f"{buffer} = CudaBuffer()",
            f"{buffer}._allocation = {allocation}",
            f"{buffer}._free = {free}",
            f"{buffer}.pointer = {pointer}",
            f"{buffer}.pending = None",
            f"{buffer}.timeline = {timeline}",
            f"{buffer}.type = {type_}",
        )

    @property
    def device(self) -> str:
        """The device that holds it."""
        return f"cuda:{self.timeline.driver.ordinal}"

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3, with the stream that the data is ready on."""
        self.check()
        return {
            "version": 3,
            "shape": self.type.shape,
            "typestr": self.type.dtype.str,
            "data": (self.pointer if self.type.size else 0, False),
            "strides": None,
            "stream": self.timeline.driver.stream,
        }

    def to_host(self) -> np.ndarray[Any, Any]:
        """A copy in host memory, after all pending work on the buffer.

        Raises:
            StoppedError: the program that computes it was stopped.
            Exception: what `Timeline.wait` raises.
        """
        self.check()
        target = np.empty(self.type.shape, self.type.dtype)
        if target.size:
            self.timeline.read(target, self.pointer)
        else:
            self.timeline.wait()
        self.check()
        return target

    def synchronize(self) -> None:
        """Wait for all pending work on the buffer; raises what `to_host` does."""
        pending = self.pending
        if pending is not None:
            pending.check()
        self.timeline.wait()
        if pending is not None:
            pending.check()

    def computed_at(self, event: Event) -> None:
        """Note the event behind the launch that computes it; no other stream uses it yet."""
        assert isinstance(self._free, FreeList), "it is new, or renewed"
        self._free = CrossStreamUse(self._free, event)

    def rewritten_on(self, pool: DevicePool) -> None:
        """Belong to the stream of `pool`, where a launch is about to write it anew.

        That stream waits for all uses of the old elements.
        """
        timeline, use = pool.timeline, self._free
        if self.timeline is not timeline:
            timeline.follow(self.timeline.driver.record(), self.timeline)
        if isinstance(use, CrossStreamUse):
            for event in use.pending():
                timeline.follow(event, None)
        self._free = pool.list_of(size_class(self.type.nbytes))
        self.pending, self.timeline = None, timeline

    @property
    def shared(self) -> bool:
        """Whether other streams may use it, or it waits for a launch with loops."""
        return self.pending is not None or type(self._free) is not FreeList

    def renew(self, timeline: Timeline) -> bool:
        """Whether a launch on `timeline` may overwrite it, if the caller is the only owner.

        Not if it belongs to another stream, or is still in use there. Otherwise its uses on other
        streams are forgotten, for they were uses of the old elements.
        """
        if self.timeline is not timeline:
            return False
        free = self._free
        if isinstance(free, CrossStreamUse):
            if not free.over:
                return False
            self._free = free.free
        return True

    def awaited_by(self, timeline: Timeline) -> InFlightLaunch | None:
        """Let another stream of the device wait for it, once; the launch to wait for there.

        Raises:
            StoppedError: the program that computes it was stopped.
        """
        self.check()
        use = self._cross_stream_use()
        if timeline not in use.followers:
            use.followers[timeline] = timeline.follow(self._ready(use), self.timeline)
        return use.followers[timeline]

    def used_at(self, event: Event) -> None:
        """Note the event behind what another stream does with it."""
        with self.timeline.stopping.lock:
            self._cross_stream_use().note(event)

    def hand_over(self, stream: int) -> None:
        """Let the stream with this handle, of any library, wait for it.

        A stream that is captured cannot wait for work outside of its graph: the host waits instead.

        Raises:
            StoppedError: the program that computes it was stopped.
        """
        self.check()
        driver = self.timeline.driver
        in_order = stream == LEGACY_STREAM and driver.follows_legacy
        if stream != driver.stream and not in_order:
            driver.activate()
            if driver.is_capturing(stream):
                with driver.beside_captures():
                    self.timeline.settle()
                return
            driver.hand_over(self._ready(self._cross_stream_use()), stream)

    def _cross_stream_use(self) -> CrossStreamUse:
        with self.timeline.stopping.lock:
            if not isinstance(self._free, CrossStreamUse):
                self._free = CrossStreamUse(self._free)
            return self._free

    def _ready(self, use: CrossStreamUse) -> Event:
        if use.ready is None:
            use.ready = self.timeline.driver.record()
        return use.ready

    def check(self) -> None:
        """Raise StoppedError if the program that computes it was stopped."""
        if self.pending is not None:
            self.pending.check()

    def __repr__(self) -> str:
        return f"CudaBuffer({self.type} at {self.pointer:#x} on {self.device})"
