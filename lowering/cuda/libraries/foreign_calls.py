"""Calls of users' functions while a stream is captured: what they get, and how they are named."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

from lowering.plan.calls.captured_call import CapturedCall
from lowering.plan.embedded_graph import EmbeddedGraphNode
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nodes import LibraryNode
from tracegraph.errors import CapturedCallError, DeviceLostError
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.kernel_calls import KernelCall
from tracegraph.user_source import lines_of


@dataclass(frozen=True, slots=True)
class CaptureStream:
    """The stream that is captured, for other libraries: by its handle, or ``__cuda_stream__``."""

    handle: int

    def __cuda_stream__(self) -> tuple[int, int]:
        """The version of this protocol, and the handle."""
        return 0, self.handle

    def __int__(self) -> int:
        return self.handle


@dataclass(frozen=True, slots=True)
class CapturedArray:
    """A contiguous array in device memory, for other libraries, while the function runs.

    It names no stream: there is nothing to wait for.
    """

    pointer: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return self.size * self.dtype.itemsize

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "version": 3,
            "data": (self.pointer, False),
            "typestr": self.dtype.str,
            "shape": self.shape,
            "strides": None,
            "stream": None,
        }


class ForeignStream:
    """In place of a library's handle: the stream that users' functions enqueue work on."""

    def __init__(self, stream: int) -> None:
        self._stream = CaptureStream(stream)

    def use_workspace(self, pointer: int, nbytes: int) -> None:
        """Functions bring their own."""

    def run(self, function: Callable[..., Any], arrays: Sequence[CapturedArray]) -> None:
        """Call a user's function."""
        function(self._stream, *arrays)


def foreign(
    call: CapturedCall, address: Callable[[Buffer], int]
) -> Callable[[ForeignStream], None]:
    """What issues a call."""
    (function,) = call.owners.values()
    arrays = [
        CapturedArray(array.address(address), array.buffer.type.dtype, array.shape)
        for array in call.operands
    ]
    return lambda library: library.run(function, arrays)


@contextmanager
def naming(node: LibraryNode | EmbeddedGraphNode) -> Iterator[None]:
    """Have errors of a user's function or graph, and of its capture, name it and the line."""
    call = node.call.call if isinstance(node.call, CapturedCall) else node.call
    if not isinstance(call, KernelCall):
        yield
        return
    try:
        yield
    except (MemoryError, DeviceLostError):
        raise
    except Exception as error:
        raise CapturedCallError(call.kernel.label, error, lines_of(node.sources)) from error
