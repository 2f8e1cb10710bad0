"""Memory of the host backend: aligned bytes, arrays inside them, and the placing of temporaries."""

from __future__ import annotations

import mmap
import sys
from bisect import insort
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from lowering.allocation.assign import ALIGNMENT
from lowering.plan.rounding import round_up

Array = np.ndarray[Any, Any]

STAGGER = ALIGNMENT // 2
"""Bytes from a multiple of the alignment to every temporary. Where the target of a copy is up to 60
bytes past its source, but for whole pages, processors may take ten times as long: a roll by a few
elements, had temporaries the places that buffers have.
"""

POISON = 0xCB
"""What unwritten memory is filled with in debug runs: no index, and no plausible float."""


_PRIVATE = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)
_NOT_NEEDED = getattr(mmap, "MADV_FREE" if sys.platform == "darwin" else "MADV_DONTNEED", None)

RETURNABLE = _NOT_NEEDED is not None
"""Whether memory can be given to the system, and its addresses kept; not on Windows."""


def aligned_bytes(size: int) -> Array:
    """`size` uninitialised bytes whose address is a multiple of `ALIGNMENT`."""
    raw = np.empty(size + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size]


def returnable_bytes(size: int) -> tuple[Array, Callable[[], None]]:
    """The same, and what gives the memory behind them to the system until they are used again."""
    assert _NOT_NEEDED is not None, "whoever asks has looked"
    if not size:
        return aligned_bytes(0), lambda: None
    mapping = mmap.mmap(-1, size, _PRIVATE)  # at the begin of a page; shared ones keep their bytes
    return np.frombuffer(mapping, np.uint8), partial(mapping.madvise, _NOT_NEEDED)


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
        start = STAGGER
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
