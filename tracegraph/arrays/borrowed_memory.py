"""BorrowedMemory: device memory of another library, borrowed for one call."""

from __future__ import annotations

from typing import Any

from tracegraph.ir.types import ArrayType

LEGACY_STREAM = 1
"""The handle CU_STREAM_LEGACY. Libraries use this stream by default, and some name it 0."""


class BorrowedMemory:
    """An array in device memory of another library, which is known by its class.

    Args:
        pointer: the address of the first element.
        type_: its dtype and shape.
        device: where it is, such as ``"cuda:0"``.
        stream: the handle of the library's current stream. A call is work on that stream, as the
            library's own functions are: it comes behind what is there, and before what follows.
            None: the elements are there, and nobody says what the library does next.
        owner: the other library's array, which keeps the memory.
        strides: in elements; None if the array is contiguous and row-major.
    """

    __slots__ = ("device", "owner", "pointer", "stream", "strides", "type")

    def __init__(
        self,
        pointer: int,
        type_: ArrayType,
        device: str,
        stream: int | None,
        owner: Any,
        strides: tuple[int, ...] | None = None,
    ) -> None:
        self.pointer, self.type, self.device = pointer, type_, device
        self.stream = LEGACY_STREAM if stream == 0 else stream
        self.owner, self.strides = owner, strides
