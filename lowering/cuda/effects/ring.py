"""Ring: a buffer in pinned memory that kernels append to, and the host takes from.

It begins with words, a `tg_ring`; the bytes follow. A kernel writes behind the head, and moves it.
The host reads from the tail on, and moves that. Both count bytes from the start of the ring on.
"""

from __future__ import annotations

import itertools
import os
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar
from weakref import WeakValueDictionary

import numpy as np

from lowering.cuda.interface import Driver, HostAllocation
from lowering.plan.nests.rounding import power_of_two

HEAD, TAIL, LOST, CAPACITY = range(4)
"""The words."""
RING_HEAD_BYTES = 32

DEFAULT_BYTES = 1 << 20


class Numbered(Protocol):
    """A site of a program that appends to a ring."""

    number: int


_S = TypeVar("_S", bound=Numbered)


class Ring(Generic[_S]):
    """The words and the bytes of a ring, and the sites that append to it, held weakly."""

    size_variable: ClassVar[str]
    """The environment variable that has the bytes to ask for."""
    fewest_bytes: ClassVar[int]
    """A ring is that large, whatever is asked for."""

    def __init__(self, memory: HostAllocation) -> None:
        self.memory = memory
        self._words = memory.bytes[:RING_HEAD_BYTES].view(np.uint64)
        self._bytes = memory.bytes[RING_HEAD_BYTES:]
        self._words[:] = 0
        self._words[CAPACITY] = self._bytes.size
        self._sites: WeakValueDictionary[int, _S] = WeakValueDictionary()
        self._numbers = itertools.count(1)

    @classmethod
    def allocate(cls, driver: Driver) -> Self:
        """A ring of the size that the environment asks for, up to a power of two.

        Raises:
            ValueError: the environment variable is not a number of bytes.
        """
        asked = os.environ.get(cls.size_variable, str(DEFAULT_BYTES))
        if not asked.isdecimal():
            raise ValueError(f"{cls.size_variable} must be a number of bytes, not {asked!r}")
        nbytes = RING_HEAD_BYTES + power_of_two(max(int(asked), cls.fewest_bytes))
        return cls(driver.allocate_host(nbytes))

    @property
    def head(self) -> int:
        """The bytes that kernels have written since the start."""
        return int(self._words[HEAD])

    @property
    def tail(self) -> int:
        """The bytes that have been taken since the start."""
        return int(self._words[TAIL])

    def _part(self, start: int, nbytes: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Bytes from a position on, which may wrap around the end."""
        start %= self._bytes.size
        behind = nbytes - (self._bytes.size - start)
        if behind <= 0:
            return self._bytes[start : start + nbytes]
        return np.concatenate([self._bytes[start:], self._bytes[:behind]])
