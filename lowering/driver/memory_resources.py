"""Memory resources: frees that neither harm somebody's capture nor wait for the device.

cuda.core calls `deallocate` when a buffer is collected, in whatever thread that happens.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from cuda.bindings import driver
from cuda.core import Buffer, Device, MemoryResource

from lowering.driver.clean_up import freed
from lowering.driver.error_checks import called, check
from lowering.driver.foreign_captures import relaxed
from lowering.plan.nests.rounding import power_of_two

_SMALLEST = 64
"""Bytes of the smallest piece of pinned memory."""


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

    def grant_access(self, ordinals: Sequence[int]) -> None:
        """Let other devices access all memory of the pool, besides those that may already."""
        access = [driver.CUmemAccessDesc() for _ in ordinals]
        for each, ordinal in zip(access, ordinals, strict=True):
            each.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
            each.location.id = ordinal
            each.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        called(driver.cuMemPoolSetAccess, self._pool.handle, access, len(access))

    def allocate(self, size: int, *, stream: Any) -> Buffer:
        """Memory for work on a stream from now on."""
        allocated = driver.cuMemAllocFromPoolAsync(size, self._pool.handle, stream.handle)
        pointer = int(check("cuMemAllocFromPoolAsync", allocated))
        return Buffer.from_handle(pointer, size, self, stream=stream)

    def deallocate(self, ptr: Any, size: int, *, stream: Any) -> None:
        """Free it, which a capture in global mode would refuse, and be invalidated by."""
        with relaxed():
            answer = driver.cuMemFreeAsync(ptr, stream.handle)
            freed(f"{size} bytes of device memory", "cuMemFreeAsync", answer)


class PinnedMemory(MemoryResource):  # type: ignore[misc]
    """Pinned host memory, mapped for the device; pieces are used again.

    The driver waits for the device before it frees such memory, and holds up other threads
    meanwhile. So a kernel would never get the answer that it waits for if a piece were freed when
    it is collected: only `trim` frees. What a launch may use is not collected before it is over.
    """

    is_device_accessible = True
    is_host_accessible = True

    def __init__(self) -> None:
        self._unused: dict[int, list[int]] = {}

    @property
    def device_id(self) -> int:
        """It belongs to no device."""
        raise RuntimeError("pinned memory belongs to no device")

    def allocate(self, size: int, *, stream: Any = None) -> Buffer:
        """Memory of at least `size` bytes, whatever the stream."""
        size = power_of_two(max(size, _SMALLEST))
        try:
            pointer = self._unused[size].pop()
        except (KeyError, IndexError):
            pointer = int(called(driver.cuMemAllocHost, size))
        return Buffer.from_handle(pointer, size, self)

    def deallocate(self, ptr: Any, size: int, *, stream: Any = None) -> None:
        """Keep it for the next piece of its size."""
        self._unused.setdefault(size, []).append(int(ptr))

    def trim(self) -> None:
        """Free what is not in use. This waits for the device."""
        for pieces in list(self._unused.values()):
            with suppress(IndexError):  # not `while pieces`: other threads may take the last one
                while True:
                    answer = driver.cuMemFreeHost(pieces.pop())
                    freed("a piece of pinned memory", "cuMemFreeHost", answer)
