"""Memory of large results: when no array lies in it any more, it is kept for the next ones.

The system hands out pages as they are first written to, which may take longer than what is computed
there; and malloc gives freed blocks back to it unless something lies behind them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from lowering.host.arena import Array, aligned_bytes
from tracegraph.types import ArrayType

LEAST_BYTES = 1 << 20
"""Smaller results are NumPy's: to lend memory takes 2 µs."""

MOST_BYTES = 1 << 28
"""So much is kept of each size, and of all sizes together when new memory is allocated. Larger
results are NumPy's."""


def is_lent(type_: ArrayType) -> bool:
    """Whether a result of this type lies in memory of the pool.

    Those of dtypes that are not NumPy's own, such as bfloat16, do not: NumPy cannot be told of them
    but by an array of another dtype, and arrays that share memory with the result would hold that.
    """
    return LEAST_BYTES <= type_.nbytes <= MOST_BYTES and type_.dtype.isbuiltin == 1


class Piece:
    """Some memory, and where it is."""

    __slots__ = ("address", "memory")

    def __init__(self, nbytes: int) -> None:
        self.memory = aligned_bytes(nbytes)
        self.address = self.memory.ctypes.data


class Lease:
    """A piece on loan from a list of free ones, given back when no array lies in it any more."""

    __slots__ = ("__array_interface__", "_free", "_piece")

    __array_interface__: dict[str, Any]
    _free: deque[Piece]
    _piece: Piece

    @classmethod
    def of(cls, piece: Piece, free: deque[Piece], shape: tuple[int, ...], typestr: str) -> Lease:
        """A piece as an array, and the list to give it back to."""
        lease = cls()
        lease._piece, lease._free = piece, free
        lease.__array_interface__ = {
            "version": 3,
            "data": (piece.address, False),
            "shape": shape,
            "typestr": typestr,
        }
        return lease

    def __del__(self) -> None:
        # Runs in any thread and at any point: appending is atomic and takes no lock.
        try:
            self._free.append(self._piece)
        except AttributeError:
            return  # an interrupt came before it was given its memory


class Pool:
    """Free memory by size.

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

    def maker(self, type_: ArrayType) -> Callable[[], Array]:
        """What makes arrays of a type, their elements undefined; it may raise MemoryError."""
        shape, typestr, nbytes = type_.shape, type_.dtype.str, type_.nbytes
        free = self._lists.setdefault(nbytes, deque(maxlen=max(MOST_BYTES // nbytes, 1)))

        def empty() -> Array:
            try:
                piece = free.pop()
            except IndexError:
                piece = self._allocate(nbytes)
            return np.asarray(Lease.of(piece, free, shape, typestr))

        return empty

    def _allocate(self, nbytes: int) -> Piece:
        if self.free_bytes > MOST_BYTES:
            self.clear()
        try:
            return Piece(nbytes)
        except MemoryError:
            self.clear()
            return Piece(nbytes)

    def clear(self) -> None:
        """Give all that is free to the system."""
        for free in list(self._lists.values()):
            free.clear()

    @property
    def free_bytes(self) -> int:
        """Bytes that are kept for later."""
        return sum(size * len(free) for size, free in list(self._lists.items()))


def is_all_of_lease(array: Array) -> bool:
    """Whether an array is the one that was made of memory of the pool: others have it as base."""
    base: Any = array.base
    return type(base) is Lease


def writable(array: Array) -> Array:
    """The same array, which has memory of its own, where elements may be written."""
    if is_all_of_lease(array):
        return np.asarray(array.base)  # NumPy lets no array be writable again that a lease is below
    array.flags.writeable = True
    return array


RESULTS = Pool()
"""That of all functions."""
