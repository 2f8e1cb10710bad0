"""The interface of device memory: what backends hand out, and Arrays wrap."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from tracegraph.ir.types import ArrayType


@runtime_checkable
class DeviceBuffer(Protocol):
    """A contiguous row-major array in device memory, alive as long as this object is.

    Work on it may be pending on the backend's stream; what reads it elsewhere waits first, or on
    the stream that `__cuda_array_interface__` names.
    """

    @property
    def pointer(self) -> int:
        """The device address of the first element."""

    @property
    def type(self) -> ArrayType:
        """Dtype and shape."""

    @property
    def device(self) -> str:
        """The device that holds it, such as ``"cuda:0"``."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3 of the CUDA array interface, with the stream that the data is ready on."""

    def to_host(self) -> NDArray[Any]:
        """A copy in host memory, after all pending work on the buffer."""

    def synchronize(self) -> None:
        """Wait for all pending work on the buffer."""

    def hand_over(self, stream: int) -> None:
        """Let a stream, named by its handle, wait for the work that computes the buffer."""
