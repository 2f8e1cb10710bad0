"""Device memory of calls: a free list by size, and the buffers that calls return.

Everything here is used on one stream. Memory that comes back may still be in use by work already
on that stream; whoever takes it next works behind it, so nothing waits.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import Any

import numpy as np

from lowering.cuda.flight import Flight
from lowering.cuda.interface import Allocation
from lowering.cuda.timeline import Timeline
from tracegraph.types import ArrayType


class Lease:
    """Memory on loan from a pool, given back when this object is collected."""

    __slots__ = ("_allocation", "_free", "pointer")

    def __init__(self, allocation: Allocation, free: list[Allocation]) -> None:
        self._allocation = allocation
        self._free = free
        self.pointer = allocation.pointer

    def __del__(self) -> None:
        # Runs in any thread and at any point: appending to a list is atomic and takes no lock.
        self._free.append(self._allocation)


class Pool:
    """Free lists by size class; what is freed is kept for the next call of a like size."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._driver = timeline.driver
        self._free: defaultdict[int, list[Allocation]] = defaultdict(list)

    def take(self, nbytes: int) -> Lease:
        """Memory of at least `nbytes`, its contents undefined.

        Raises:
            MemoryError: the device has not enough, even after the free lists were given back.
        """
        size = size_class(nbytes)
        free = self._free[size]
        try:
            return Lease(free.pop(), free)
        except IndexError:
            pass
        try:
            return Lease(self._driver.allocate(size), free)
        except MemoryError:
            self.trim()
        return Lease(self._driver.allocate(size), free)

    def trim(self) -> None:
        """Give all free memory back to the device."""
        for free in list(self._free.values()):
            free.clear()
        self._timeline.settle()

    @property
    def free_bytes(self) -> int:
        """Bytes that are held and not on loan."""
        return sum(size * len(free) for size, free in list(self._free.items()))


@cache
def size_class(nbytes: int) -> int:
    """The size that a request is rounded up to: four classes per power of two, at least 256 bytes.

    >>> size_class(1), size_class(1000), size_class(5000)
    (256, 1024, 5120)
    """
    step = max(256, 1 << max(nbytes - 1, 0).bit_length() >> 3)
    return -(-max(nbytes, 1) // step) * step


class CudaBuffer:
    """A contiguous row-major array in device memory, as `lowering.backends.DeviceBuffer` has it.

    `flight` is the launch with loops that it waits for, if any: should that be stopped, every use
    raises StoppedError.
    """

    __slots__ = ("__weakref__", "_lease", "_timeline", "driver", "flight", "pointer", "type")

    def __init__(self, lease: Lease, type_: ArrayType, timeline: Timeline) -> None:
        self._lease = lease
        self._timeline = timeline
        self.driver = timeline.driver
        self.flight: Flight | None = None
        self.type = type_
        self.pointer = lease.pointer

    @property
    def device(self) -> str:
        """The device that holds it."""
        return f"cuda:{self.driver.ordinal}"

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
            "stream": self.driver.stream,
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
            self._timeline.read(target, self.pointer)
            self.check()
        return target

    def synchronize(self) -> None:
        """Wait for all pending work on the buffer; raises what `to_host` does."""
        self.check()
        self._timeline.wait()
        self.check()

    def check(self) -> None:
        """Raise StoppedError if the program that computes it was stopped."""
        if self.flight is not None:
            self.flight.check()

    def __repr__(self) -> str:
        return f"CudaBuffer({self.type} at {self.pointer:#x} on {self.device})"
