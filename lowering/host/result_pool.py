"""Caching allocator of large results: memory that no array uses any more serves the next ones.

The system maps a page when it is first written, which may take longer than the computation. malloc
returns large freed blocks to the system, so NumPy's results would fault all pages in every call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import cycle
from sys import getrefcount
from typing import Any

import numpy as np

from lowering.host.arena import Array
from tracegraph.ir.types import ArrayType

LEAST_BYTES = 1 << 18
"""Smaller results are NumPy's own: malloc keeps their memory."""

MOST_BYTES = 1 << 28
"""Most bytes kept for each size, and for all sizes together when new memory is allocated. Larger
results are NumPy's own. A bound on memory, not a measured optimum."""

TRIES = 8
"""Most blocks tried for a free one: a user may hold thousands of results."""

PAGE, PLACES = 1 << 12, (2048, 1024, 3072)
"""Bytes of a page, and the offsets of results in a page, used in rotation.

NumPy's large arrays start at a page. Results that do not avoid 4K aliasing: false dependences of
loads on stores at the same offset in another page.
"""


def is_pooled(type_: ArrayType) -> bool:
    """Whether the pool allocates results of this type."""
    return LEAST_BYTES <= type_.nbytes <= MOST_BYTES


class ArrayMemory(np.ndarray[Any, Any]):
    """The bytes of one array at a time.

    A NumPy view refers to the object that owns its memory if that is of another class. So a block
    has one more reference while its array, or a view of it, exists.
    """


Piece = tuple[ArrayMemory, int]
"""A block of memory, and the offset of its array."""


def _references(pieces: Sequence[Piece]) -> int:
    memory, _ = pieces[0]
    return getrefcount(memory)


_IDLE = _references([(ArrayMemory(0, np.uint8), 0)])
"""The references to a free block; versions of Python differ."""


class ResultPool:
    """Blocks by size, used or free.

    >>> pool = ResultPool()
    >>> empty = pool.maker(ArrayType("float32", (1000,)))
    >>> x = empty()
    >>> x.shape, pool.free_bytes
    ((1000,), 0)
    >>> del x
    >>> pool.free_bytes
    4000
    """

    def __init__(self) -> None:
        self._lists: dict[int, deque[Piece]] = {}
        self._places = cycle(PLACES)

    def maker(self, type_: ArrayType) -> Callable[[], Array]:
        """A function that makes uninitialised arrays of a type; it may raise MemoryError."""
        shape, dtype, nbytes = type_.shape, type_.dtype, type_.nbytes
        pieces = self._lists.setdefault(nbytes, deque(maxlen=max(MOST_BYTES // nbytes, 1)))
        made, tries = np.ndarray, range(TRIES)

        def empty() -> Array:
            # Other threads may do the same: a thread that holds a block makes it look used.
            for _ in tries:
                try:
                    memory, start = pieces[0]
                except IndexError:
                    break
                pieces.rotate(-1)
                if getrefcount(memory) == _IDLE:
                    return made(shape, dtype, memory, start)
            memory, start = piece = self._allocate(nbytes)
            pieces.append(piece)
            return made(shape, dtype, memory, start)

        return empty

    def _allocate(self, nbytes: int) -> Piece:
        if self.free_bytes > MOST_BYTES:
            self.clear()
        try:
            memory = ArrayMemory(nbytes + PAGE, np.uint8)
        except MemoryError:
            self.clear()
            memory = ArrayMemory(nbytes + PAGE, np.uint8)
        return memory, (next(self._places) - memory.ctypes.data) % PAGE

    def clear(self) -> None:
        """Return all free blocks to the system."""
        for pieces in list(self._lists.values()):
            pieces.clear()

    @property
    def free_bytes(self) -> int:
        """Bytes of free blocks."""
        return sum(
            size
            for size, pieces in list(self._lists.items())
            for memory, _ in list(pieces)
            if getrefcount(memory) == _IDLE
        )


def is_all_of_memory(array: Array) -> bool:
    """Whether an array is all of a block: views of it have the array as their base."""
    return type(array.base) is ArrayMemory


RESULTS = ResultPool()
"""The pool of all functions."""
