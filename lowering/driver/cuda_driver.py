"""CudaDriver: one GPU by one launch stream, as `lowering.cuda.interface.Driver`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Stream, StreamOptions
from cuda.core import launch as launch_now
from cuda.core.graph import GraphDefinition

from lowering.cuda.interface import Event, ForeignArray, Launch
from lowering.driver.device import CudaDevice
from lowering.driver.error_checks import by_core, called, check, scarce
from lowering.driver.executables import launcher
from lowering.driver.foreign_arrays import foreign_array
from lowering.driver.foreign_captures import add_to_capture
from lowering.driver.graphs import is_known
from lowering.driver.handles import (
    CudaEvent,
    CudaExecutableGraph,
    CudaTimer,
    DeviceAllocation,
    PinnedAllocation,
)
from lowering.driver.memory_resources import PoolMemory
from lowering.driver.shared_memory import SharedBlock, allocate_block, opened_block
from tracegraph.concurrency.hold_ups import alone_in_driver

_NON_BLOCKING = int(driver.CUstream_flags.CU_STREAM_NON_BLOCKING)

MOST_AWAITED = 64
"""Streams of other libraries for which an event is kept."""


class CudaDriver(CudaDevice):
    """One GPU with a stream of launches and copies.

    The launch stream is a blocking one: it is ordered with CUDA's legacy default stream, which
    other libraries use by default. Memory for other streams is allocated and freed on a stream that
    never runs anything else.
    """

    def __init__(self, ordinal: int) -> None:
        super().__init__(ordinal)
        self._pool = PoolMemory(self._device)
        self._stream = self.create_stream()
        self._stream_owner: Any = None
        self._memory_stream: Any = None
        self._stream_handle = self._stream.handle
        self.stream = int(self._stream_handle)
        self.follows_legacy = True
        self._arrivals: dict[int, CudaTimer] = {}
        self._stop_stream: Any = None
        self._levels: PinnedAllocation | None = None

    # Streams

    def on(self, stream: int, owner: Any) -> CudaDriver:
        """The same device by another stream; all else is shared."""
        handle = self._own(stream)
        other = copy.copy(self)
        other._stream = Stream.from_handle(stream)
        other._stream_handle = handle
        other.stream = stream
        other.follows_legacy = not called(driver.cuStreamGetFlags, handle) & _NON_BLOCKING
        other._arrivals = {}
        other._stream_owner = owner
        other._memory_stream = self._device.create_stream(options=StreamOptions(nonblocking=True))
        return other

    def record(self) -> CudaEvent:
        event = by_core(self._stream.record)
        return CudaEvent(event, event.handle)

    def wait(self, event: Event) -> None:
        self.hand_over(event, self.stream)

    def await_stream(self, stream: int) -> None:
        """By one event for each stream, which is recorded again each time: the wait is for what the
        stream had when the event was recorded last.
        """
        handle = driver.CUstream(stream)
        event = self._arrivals.get(stream)
        if event is None:
            if len(self._arrivals) >= MOST_AWAITED:
                self._arrivals.clear()
            event = self._arrivals[stream] = CudaTimer.create(timed=False)
        called(driver.cuEventRecord, event.event, handle)
        called(driver.cuStreamWaitEvent, self._stream_handle, event.event, 0)

    def hand_over(self, event: Event, stream: int) -> None:
        assert isinstance(event, CudaEvent), "events come from this driver"
        handle = driver.CUstream(stream)
        called(driver.cuStreamWaitEvent, handle, event.handle, 0)

    def synchronize(self) -> None:
        by_core(self._stream.sync)

    def add_to_capture(self, stream: int, graph: GraphDefinition) -> None:
        """By a child graph node, which has the graph's references to user objects."""
        add_to_capture(self._own(stream), graph.handle)

    # Memory

    def allocate(self, nbytes: int) -> DeviceAllocation:
        """Device memory, usable by work on the launch stream from now on."""
        stream = self._memory_stream or self._stream
        with scarce(f"cuda:{self.ordinal} has not enough free memory for {nbytes} bytes"):
            buffer = self._pool.allocate(max(nbytes, 1), stream=stream)
        if self._memory_stream is not None:
            self._stream.wait(self._memory_stream)
        return DeviceAllocation(buffer, int(buffer.handle), nbytes)

    def grant_access(self, ordinals: Sequence[int]) -> None:
        """By the access flags of the pool that all memory comes from."""
        for other in ordinals:
            if not self._device.can_access_peer(other) or not Device(other).can_access_peer(
                self.ordinal
            ):
                raise RuntimeError(
                    f"cuda:{other} cannot reach the memory of cuda:{self.ordinal}: the GPUs of a "
                    "mesh are joined by NVLink, or by PCIe with peer access"
                )
        self._pool.grant_access(ordinals)

    def allocate_shared(self, nbytes: int) -> SharedBlock:
        return allocate_block(nbytes)

    def open_shared(self, name: bytes) -> int:
        return opened_block(name)

    def raise_flag(self, pointer: int, *, at_once: bool = False) -> None:
        """Copy a 1 or a 2 on a separate stream, and wait for this copy.

        The source is pinned, so that the copy engine does it, which waits for no kernel.
        """
        if self._levels is None:
            levels = self.allocate_host(8)
            levels.bytes.view(np.uint32)[:] = 1, 2
            self._stop_stream = self._device.create_stream(options=StreamOptions(nonblocking=True))
            self._levels = levels
        level = self._levels.pointer + 4 * at_once
        called(driver.cuMemcpyHtoDAsync, pointer, level, 4, self._stop_stream.handle)
        self._stop_stream.sync()

    def clear(self, pointer: int, nbytes: int) -> None:
        called(driver.cuMemsetD8Async, pointer, 0, nbytes, self._stream_handle)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        called(driver.cuMemcpyDtoDAsync, target, source, nbytes, self._stream_handle)

    def copy_to_device(self, pointer: int, source: np.ndarray[Any, Any]) -> bool:
        """Copy a host array. The driver copies pageable memory aside before the call returns, and
        reads pinned memory later.
        """
        address = source.ctypes.data
        called(driver.cuMemcpyHtoDAsync, pointer, address, source.nbytes, self._stream_handle)
        return is_known(address)

    def copy_to_host(self, target: np.ndarray[Any, Any], pointer: int) -> None:
        address = target.ctypes.data
        with alone_in_driver():
            called(driver.cuMemcpyDtoHAsync, address, pointer, target.nbytes, self._stream_handle)
            self.synchronize()

    def write_word(self, pointer: int, value: int) -> None:
        """Write a word by a memory operation of the stream, which first makes earlier writes
        visible.
        """
        written = driver.cuStreamWriteValue32(self._stream_handle, pointer, value, 0)
        check("cuStreamWriteValue32", written)

    def foreign(self, array: object, *, ordered: bool = True) -> ForeignArray | None:
        """View another library's array; the launch stream waits for its producer's."""
        return foreign_array(array, self.stream if ordered else None)

    # Launches

    def launch_kernel(self, launch: Launch, values: Sequence[int]) -> None:
        config = LaunchConfig(grid=launch.grid, block=launch.block, shmem_size=launch.shared_bytes)
        launch_now(self._stream, config, launch.kernel, *(np.uint64(value) for value in values))

    def upload(self, executable: CudaExecutableGraph) -> None:
        executable.require_open()
        with alone_in_driver():
            called(driver.cuGraphUpload, executable.handle, self._stream_handle)

    def launcher(self, executable: CudaExecutableGraph) -> Callable[[], None]:
        return launcher(executable, self._stream_handle)
