"""The interface of what runs Plans: backends, executables, and the memory that they hand out.

A third-party backend registers in the entry-point group ``tracegraph.backends``: an entry point of
the backend's name that loads to a callable, which takes the device and returns a `Backend`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from tracegraph.ir import Program
from tracegraph.types import ArrayType


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


class Executable(Protocol):
    """A Plan that can run."""

    @property
    def plan(self) -> Any:
        """The Plan that runs: the one compiled, by other nodes where the device lacks some."""

    def __call__(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Run once with flat arguments, and return fresh results in order.

        An argument is a Python number, an ndarray, a `DeviceBuffer`, or any object with
        ``__cuda_array_interface__`` or DLPack; its dtype and shape are those of the Plan's input.
        Results are ndarrays on the host, and `DeviceBuffer`s on a device.
        """

    def stats(self) -> Mapping[str, int]:
        """Counts since compilation: launches, updates (of moved addresses), bytes_copied."""

    def close(self) -> None:
        """Free what the executable holds; a later call raises."""


class Backend(Protocol):
    """Compiles Plans for one device."""

    @property
    def name(self) -> str:
        """The name that selects it: the part of a device before the colon."""

    def compile(self, plan: Any) -> Executable:
        """Make everything that running the Plan needs."""


class Compiler(Protocol):
    """Program -> Plan -> Executable, and views of a Plan."""

    def lower(self, program: Program) -> Any:
        """The Plan of a program."""

    def backend(self, device: str) -> Backend:
        """The backend of a device."""

    def source(self, plan: Any) -> str:
        """CUDA C++ text of the kernels."""

    def memory(self, plan: Any) -> Mapping[str, int]:
        """Bytes of arguments, outputs, scratch and constants."""

    def explain(self, plan: Any) -> str:
        """A table of every loop and branch."""

    def dot(self, plan: Any) -> str:
        """The graph in Graphviz's language."""
