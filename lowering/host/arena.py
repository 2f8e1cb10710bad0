"""Memory of the host backend: aligned bytes, and a first-fit allocator for temporaries."""

from __future__ import annotations

import mmap
import sys
from bisect import insort
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from lowering.plan.nests.rounding import round_up
from lowering.plan.target.hardware import ALIGNMENT

Array = np.ndarray[Any, Any]

STAGGER = ALIGNMENT // 2
"""Bytes from a multiple of the alignment to every temporary, against 4K aliasing. A copy whose
target is 1 to 63 bytes past its source, modulo the page size, may take ten times as long: a roll by
a few elements would be one, if temporaries were aligned like buffers.
"""

POISON = 0xCB
"""The byte that fills unwritten memory in debug runs: it makes no valid index and no likely
float."""


_PRIVATE = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)
_NOT_NEEDED = getattr(mmap, "MADV_FREE" if sys.platform == "darwin" else "MADV_DONTNEED", None)

RETURNABLE = _NOT_NEEDED is not None
"""Whether pages can be returned to the system while their addresses stay; not on Windows."""


def aligned_bytes(size: int) -> Array:
    """`size` uninitialised bytes whose address is a multiple of `ALIGNMENT`."""
    raw = np.empty(size + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size]


def returnable_bytes(size: int) -> tuple[Array, Callable[[], None]]:
    """The same, and a function that returns their pages to the system until the next use."""
    assert _NOT_NEEDED is not None, "RETURNABLE says so"
    if not size:
        return aligned_bytes(0), lambda: None
    mapping = mmap.mmap(
        -1, size, _PRIVATE
    )  # page-aligned; private, as shared mappings keep their bytes
    return np.frombuffer(mapping, np.uint8), partial(mapping.madvise, _NOT_NEEDED)


class Workspace:
    """First-fit allocator of temporaries, in bytes that all nests share.

    Nests run one after the other, so `size` is that of the largest nest.
    """

    def __init__(self) -> None:
        self.size = 0
        self._used: list[tuple[int, int]] = []  # (start, end), sorted

    def allocate(self, size: int) -> int:
        """The start of `size` free bytes."""
        needed = round_up(max(size, 1), ALIGNMENT)
        start = STAGGER
        for low, high in self._used:
            if low - start >= needed:
                break
            start = high
        insort(self._used, (start, start + needed))
        self.size = max(self.size, start + needed)
        return start

    def free(self, start: int) -> None:
        """Free the block at `start`."""
        self._used = [block for block in self._used if block[0] != start]
