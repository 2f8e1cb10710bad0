"""Memory of a recorded device: addresses are given out, and nothing is copied."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import field
from typing import Any

import numpy as np

from lowering.cuda.interface import ForeignArray
from lowering.testing.call_log import CallLog
from lowering.testing.recorded_objects import RecordedHostMemory, RecordedMemory
from tracegraph.concurrency.weak_set import ConcurrentWeakSet
from tracegraph.generated.dataclass import dataclass


@dataclass(eq=False, repr=False)
class MemoryRecorder(CallLog):
    """The calls that concern the memory of one device.

    Args:
        memory: the bytes of the device; more cannot be allocated at a time.

    `flags` are the addresses of the stop flags that are up.
    """

    memory: int = 1 << 40
    ordinal: int = field(default=0, init=False)
    flags: set[int] = field(default_factory=set, init=False)
    live_memory: ConcurrentWeakSet[RecordedMemory | RecordedHostMemory] = field(
        default_factory=ConcurrentWeakSet, init=False
    )
    _addresses: Iterator[int] = field(default_factory=lambda: itertools.count(1), init=False)
    _kept_for_graphs: dict[int, int] = field(default_factory=dict, init=False)  # by stream

    def allocate(self, nbytes: int) -> RecordedMemory:
        """A new address; raises MemoryError if the device is full."""
        self._log("allocate", nbytes)
        if nbytes > self.memory_info()[0]:
            raise MemoryError(f"{nbytes} bytes are more than are free")
        memory = RecordedMemory(next(self._addresses) << 32, nbytes)
        self.live_memory.add(memory)
        return memory

    def allocate_shared(self, nbytes: int) -> RecordedMemory:
        """As `allocate`."""
        return self.allocate(nbytes)

    def open_shared(self, name: bytes) -> int:
        """An address far away."""
        self._log("open_shared", name)
        return int.from_bytes(name, "big") + (1 << 60)

    def trim(self) -> None:
        """Freed memory is never kept, but that of graphs' launches."""
        self._log("trim")
        self._kept_for_graphs.clear()

    def graph_memory(self) -> int:
        """What launches on all streams have used since memory was trimmed, each stream its own."""
        return sum(self._kept_for_graphs.values())

    def memory_info(self) -> tuple[int, int]:
        """What is not allocated, and all there is."""
        used = sum(m.nbytes for m in self.live_memory if isinstance(m, RecordedMemory))
        return self.memory - used - self.graph_memory(), self.memory

    def allocate_host(self, nbytes: int) -> RecordedHostMemory:
        """Memory that Python can read and write."""
        self._log("allocate_host", nbytes)
        memory = RecordedHostMemory(np.zeros(nbytes, np.uint8))
        self.live_memory.add(memory)
        return memory

    def clear(self, pointer: int, nbytes: int) -> None:
        self._log("clear", pointer, nbytes)
        self.flags.discard(pointer)

    def copy_to_device(self, pointer: int, source: np.ndarray[Any, Any]) -> bool:
        self._log("copy_to_device", pointer, source.nbytes)
        return False

    def copy_to_host(self, target: np.ndarray[Any, Any], pointer: int) -> None:
        """Zeros, because there is no memory."""
        self._log("copy_to_host", pointer, target.nbytes)
        target[...] = 0

    def _write(self, pointer: int, value: int) -> None:
        for memory in self.live_memory:
            at = pointer - memory.pointer
            if isinstance(memory, RecordedHostMemory) and 0 <= at < memory.bytes.nbytes:
                memory.bytes[at : at + 4].view(np.uint32)[0] = value

    def locate(self, address: int) -> str | None:
        """The name of the live memory that an address is in."""
        for memory in self.live_memory:
            on_device = isinstance(memory, RecordedMemory)
            nbytes = memory.nbytes if isinstance(memory, RecordedMemory) else memory.bytes.nbytes
            if memory.pointer <= address < memory.pointer + nbytes:
                return f"cuda:{self.ordinal}" if on_device else "host"
        return None

    def retained(self, owner: Any) -> Any:
        """The `allocation` of an owner that has one."""
        return getattr(owner, "allocation", None)

    def foreign(self, array: object, *, ordered: bool = True) -> ForeignArray | None:
        """What `__cuda_array_interface__` says, believed."""
        described = getattr(array, "__cuda_array_interface__", None)
        if described is None:
            return None
        self._log("foreign", ordered)
        dtype, shape = np.dtype(described["typestr"]), tuple(described["shape"])
        strides = described.get("strides") or np.empty(shape, dtype).strides
        return ForeignArray(
            described["data"][0],
            dtype,
            shape,
            tuple(stride // dtype.itemsize for stride in strides),
            0,
            array,
        )
