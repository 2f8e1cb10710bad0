"""Memory resources: frees that neither harm somebody's capture nor wait for the device.

cuda.core calls `deallocate` when a buffer is collected, in whatever thread that happens.
"""

from __future__ import annotations

import _thread
from typing import Any

from cuda.bindings import driver
from cuda.core import Buffer, Device, MemoryResource

from lowering.driver.checks import check
from lowering.driver.foreign_captures import relax, relaxed
from lowering.driver.thread import Thread


class PoolMemory(MemoryResource):  # type: ignore[misc]
    """Memory from a device's pool, allocated and freed in stream order."""

    is_device_accessible = True
    is_host_accessible = False

    def __init__(self, device: Device) -> None:
        self._device = device
        self._pool = device.memory_resource

    @property
    def device_id(self) -> int:
        """The device's number."""
        return int(self._device.device_id)

    def allocate(self, size: int, *, stream: Any) -> Buffer:
        """Memory for work on a stream from now on."""
        allocated = driver.cuMemAllocFromPoolAsync(size, self._pool.handle, stream.handle)
        pointer = int(check("cuMemAllocFromPoolAsync", allocated))
        return Buffer.from_handle(pointer, size, self, stream=stream)

    def deallocate(self, ptr: Any, size: int, *, stream: Any) -> None:
        """Free it, which a capture in global mode would refuse, and be invalidated by."""
        with relaxed():
            driver.cuMemFreeAsync(ptr, stream.handle)


class PinnedMemory(MemoryResource):  # type: ignore[misc]
    """Pinned host memory, mapped for the device.

    The driver waits for the device before it frees such memory. A thread that the device waits for
    may drop the last reference to a piece, or collect it. So a thread of its own frees it.
    """

    is_device_accessible = True
    is_host_accessible = True

    def __init__(self, thread: Thread) -> None:
        self._thread = thread

    @property
    def device_id(self) -> int:
        """It belongs to no device."""
        raise RuntimeError("pinned memory belongs to no device")

    def allocate(self, size: int, *, stream: Any = None) -> Buffer:
        """Memory, whatever the stream."""
        pointer = int(check("cuMemAllocHost", driver.cuMemAllocHost(size)))
        return Buffer.from_handle(pointer, size, self)

    def deallocate(self, ptr: Any, size: int, *, stream: Any = None) -> None:
        """Have it freed."""
        try:
            _thread.start_new_thread(self._free, (int(ptr),))
        except RuntimeError:
            return  # the process ends, which frees it

    def _free(self, pointer: int) -> None:
        self._thread.ready  # noqa: B018 - the first read does it
        relax()
        driver.cuMemFreeHost(pointer)
