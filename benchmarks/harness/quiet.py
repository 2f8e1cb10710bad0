"""Quiet cores: where Python runs fastest just now.

The cores of a virtual machine may be hyperthreads whose other half serves somebody else. While that
is busy, Python runs at little more than half its speed, and it changes within a second: what is
timed there is the neighbour. So each turn is taken on the core that is quietest when it begins.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from time import perf_counter

NEAR = 1.1
"""A core is taken at once if it is no slower than the fastest so far by more than this factor."""

_REPEATS = 3
_DEPTH = 6
_CALLS = (2 << _DEPTH) - 1


class QuietCores:
    """The cores that this thread may use, and how fast those were that turns were taken on.

    `paces` are seconds that a call in Python took, for each turn. Other threads of the process stay
    where they are, and so do all where the system has no affinities.
    """

    def __init__(self) -> None:
        self.paces: list[float] = []
        self._last = -1
        self._fastest = 0.0  # none is as fast: the first turn looks at all

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Stay on the quietest core meanwhile."""
        if not hasattr(os, "sched_setaffinity"):
            self.paces.append(_pace())
            yield
            return
        allowed = os.sched_getaffinity(0)
        try:
            self.paces.append(self._settle(allowed))
            yield
        finally:
            os.sched_setaffinity(0, allowed)

    def _settle(self, allowed: Collection[int]) -> float:
        """Move to a core that is as fast as any was, or else to the fastest; its pace."""
        paces: dict[int, float] = {}
        for core in sorted(allowed, key=lambda core: core != self._last):
            os.sched_setaffinity(0, {core})
            paces[core] = _pace()
            if paces[core] <= NEAR * self._fastest:
                break
        self._last = min(paces, key=paces.__getitem__)
        os.sched_setaffinity(0, {self._last})
        pace = paces[self._last]
        self._fastest = min(self._fastest, pace) if self._fastest else pace
        return pace


def _pace() -> float:
    """Seconds of a call in Python, a frame and all; the least of a few, for the first are cold."""
    return min(_seconds() for _ in range(_REPEATS)) / _CALLS


def _seconds() -> float:
    start = perf_counter()
    _tree(_DEPTH)
    return perf_counter() - start


def _tree(depth: int) -> int:
    """Calls itself once for each node of a tree of a number of levels."""
    return 1 + _tree(depth - 1) + _tree(depth - 1) if depth else 1
