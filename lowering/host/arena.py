"""Memory of the host backend: aligned bytes, arrays inside them, and the placing of temporaries."""

from __future__ import annotations

from bisect import insort
from typing import Any

import numpy as np

from lowering.memory import ALIGNMENT
from lowering.rounding import round_up

Array = np.ndarray[Any, Any]

POISON = 0xCB
"""What unwritten memory is filled with in debug runs: no index, and no plausible float."""


def aligned_bytes(size: int) -> Array:
    """`size` uninitialised bytes whose address is a multiple of `ALIGNMENT`."""
    raw = np.empty(size + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size]


class Workspace:
    """Places the temporaries of one nest, first fit, in bytes that all nests share.

    Nests run one after the other, so that the bytes needed are those of the largest nest.
    """

    def __init__(self) -> None:
        self.size = 0
        self._taken: list[tuple[int, int]] = []  # (start, end), sorted

    def take(self, size: int) -> int:
        """The start of `size` free bytes."""
        needed = round_up(max(size, 1), ALIGNMENT)
        start = 0
        for low, high in self._taken:
            if low - start >= needed:
                break
            start = high
        insort(self._taken, (start, start + needed))
        self.size = max(self.size, start + needed)
        return start

    def give_back(self, start: int) -> None:
        """Free what was taken at `start`."""
        self._taken = [block for block in self._taken if block[0] != start]
