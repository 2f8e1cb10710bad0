"""Handles: memory and events that a driver hands out, and arrays of other libraries."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from tracegraph.generated.dataclass import dataclass

__all__ = ["Allocation", "Event", "ForeignArray", "HostAllocation", "SharedAllocation", "Timer"]


class Allocation(Protocol):
    """Device memory that is freed, in stream order, when this object is collected."""

    @property
    def pointer(self) -> int:
        """The address; a multiple of 256."""

    @property
    def nbytes(self) -> int:
        """The size."""


class SharedAllocation(Allocation, Protocol):
    """Device memory that other processes of the machine can open by a name. It is not freed."""

    @property
    def name(self) -> bytes:
        """The name by which other processes open it."""


class HostAllocation(Protocol):
    """Pinned host memory, which kernels write to and read as well; freed when it is collected."""

    @property
    def pointer(self) -> int:
        """The address, the same for kernels and for the host; a multiple of 256."""

    @property
    def bytes(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """The memory."""


class Event(Protocol):
    """A point in the order of a stream."""

    def __call__(self) -> bool:
        """Whether the stream has passed it."""


class Timer(Protocol):
    """An event that notes the time when it is recorded."""

    @property
    def handle(self) -> int:
        """The handle, for event nodes."""

    def since(self, start: Any, /) -> float:
        """The milliseconds between the last records of another one and of this; waits for it."""


@dataclass(frozen=True, slots=True)
class ForeignArray:
    """Another library's array in device memory; `strides` are in elements."""

    pointer: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: int
    owner: Any
