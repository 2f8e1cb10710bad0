"""Memory of large results: when no array lies in it any more, it is kept for the next ones.

The system hands out pages as they are first written to, which may take longer than what is computed
there; and malloc gives freed blocks back to it unless something lies behind them.
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
"""Smaller results are NumPy's: malloc keeps their memory."""

MOST_BYTES = 1 << 28
"""So much is kept of each size, and of all sizes together when new memory is allocated. Larger
results are NumPy's."""

TRIES = 8
"""Pieces that are looked at for one that is free: a user may hold thousands of results."""

PAGE, PLACES = 1 << 12, (2048, 1024, 3072)
"""Bytes of a page, and from where one begins to a result, in turns.

NumPy's arrays begin where pages do. Processors take a load for one of what has been stored shortly
before where both are at about the same place in their pages.
"""


def is_pooled(type_: ArrayType) -> bool:
    """Whether a result of this type lies in memory of the pool."""
    return LEAST_BYTES <= type_.nbytes <= MOST_BYTES


class Memory(np.ndarray[Any, Any]):
    """Bytes that one array at a time is made of.

    NumPy has a view hold the array that it was made of where the memory behind that is of another
    class. So these have one reference more as long as their array, or a part of it, is there.
    """


Piece = tuple[Memory, int]
"""Memory, and where its array begins."""


def _references(pieces: Sequence[Piece]) -> int:
    memory, _ = pieces[0]
    return getrefcount(memory)


_IDLE = _references([(Memory(0, np.uint8), 0)])
"""The references to memory that no array lies in; not the same in all versions of Python."""


class Pool:
    """Memory by size, lent or free.

    >>> pool = Pool()
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
        """What makes arrays of a type, their elements undefined; it may raise MemoryError."""
        shape, dtype, nbytes = type_.shape, type_.dtype, type_.nbytes
        pieces = self._lists.setdefault(nbytes, deque(maxlen=max(MOST_BYTES // nbytes, 1)))
        made, tries = np.ndarray, range(TRIES)

        def empty() -> Array:
            # Other threads may do the same: whoever has the piece in hand makes it seem in use.
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
            memory = Memory(nbytes + PAGE, np.uint8)
        except MemoryError:
            self.clear()
            memory = Memory(nbytes + PAGE, np.uint8)
        return memory, (next(self._places) - memory.ctypes.data) % PAGE

    def clear(self) -> None:
        """Give all that is free to the system."""
        for pieces in list(self._lists.values()):
            pieces.clear()

    @property
    def free_bytes(self) -> int:
        """Bytes that are kept for later."""
        return sum(
            size
            for size, pieces in list(self._lists.items())
            for memory, _ in list(pieces)
            if getrefcount(memory) == _IDLE
        )


def is_all_of_memory(array: Array) -> bool:
    """Whether an array is the one that was made of a piece: others have it as their base."""
    return type(array.base) is Memory


RESULTS = Pool()
"""That of all functions."""
