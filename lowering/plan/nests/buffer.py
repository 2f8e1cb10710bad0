"""Buffer: a contiguous piece of memory that a Plan names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tracegraph.ir.record import record
from tracegraph.ir.types import ArrayType

Space = Literal["input", "output", "const", "scratch"]


@record
class Buffer:
    """A contiguous row-major array in memory, compared by identity.

    The `space` says where the memory comes from: the call (input, output), the Plan (const), or the
    arena (scratch). The `number` counts within the space.
    """

    space: Space
    number: int
    type: ArrayType

    def __str__(self) -> str:
        return f"{self.space}[{self.number}]"


def overlap(one: Buffer, other: Buffer, offsets: Mapping[Buffer, int]) -> bool:
    """Whether two buffers share memory, given the offsets of scratch."""
    if one is other or one not in offsets or other not in offsets:
        return one is other
    first, second = offsets[one], offsets[other]
    return first < second + other.type.nbytes and second < first + one.type.nbytes
