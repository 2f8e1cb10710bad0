"""Buffer: a contiguous piece of memory that a Plan names."""

from __future__ import annotations

from typing import Literal

from tracegraph.ir.record import record
from tracegraph.ir.types import ArrayType

Space = Literal["input", "output", "const", "scratch"]


@record
class Buffer:
    """A contiguous row-major array in memory, compared by identity.

    `space` says who provides the memory: the call (input, output), the Plan (const), or the arena
    (scratch). `number` counts within the space. Offsets of scratch are in `Plan.offsets`.
    """

    space: Space
    number: int
    type: ArrayType

    def __str__(self) -> str:
        return f"{self.space}[{self.number}]"
