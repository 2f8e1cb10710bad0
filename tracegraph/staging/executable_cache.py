"""Residents: the executables of jitted functions, which are closed when memory is short.

Of those that are idle, the one that was used least recently goes first. Its function keeps the
plan, and builds the executable again at the next call.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Container, Hashable, Iterable, Mapping
from typing import Any

from tracegraph.staging.stages import Compiled, Lowered
from tracegraph.weak_set import ConcurrentWeakSet

ticks = itertools.count()
"""A clock that goes on by one with each use of a resident."""

COUNTS = ("launches", "updates", "bytes_copied")


class Resident:
    """An executable of a jitted function; `compiled` is None while it is evicted.

    `used` is the tick of its last use.
    """

    __slots__ = ("__weakref__", "_past", "compiled", "evictions", "lowered", "used")

    def __init__(self, compiled: Compiled) -> None:
        self.lowered: Lowered = compiled.lowered
        self.compiled: Compiled | None = compiled
        self.used = next(ticks)
        self.evictions = 0
        self._past: Counter[str] = Counter()

    def evict(self) -> bool:
        """Close the executable, unless a call is using it; whether it was closed."""
        # In sight up to its end: lest a call build another one while this is in use.
        compiled = self.compiled
        if compiled is None or not compiled.executable.close_idle():
            return False
        self.lost(compiled)
        return True

    def lost(self, compiled: Compiled) -> bool:
        """Whether `compiled` was closed, by an eviction or a reset; then it is given up."""
        if not compiled.executable.closed:
            return False
        with _lock:
            if self.compiled is compiled:
                self.compiled = None
                self.evictions += 1
                self._count(compiled)
        return True

    def close(self) -> None:
        """Close the executable, once no call is using it."""
        compiled = self._hide()
        if compiled is not None:
            try:
                compiled.close()
            finally:
                self._count(compiled)

    def _hide(self) -> Compiled | None:
        with _lock:
            compiled, self.compiled = self.compiled, None
        return compiled

    def _count(self, compiled: Compiled) -> None:
        counts = compiled.stats()
        self._past.update({name: counts[name] for name in COUNTS})

    def stats(self) -> Mapping[str, int]:
        """Counts of calls, those of evicted executables included."""
        with _lock:  # what is lost counts as present or as past
            compiled = self.compiled
            counts = {} if compiled is None else compiled.stats()
            return {name: self._past[name] + counts.get(name, 0) for name in COUNTS}

    def pieces(self) -> Mapping[Hashable, int]:
        """The memory it holds, as `Executable.pieces` has it."""
        compiled = self.compiled
        return {} if compiled is None else compiled.executable.pieces()


_lock = threading.Lock()
_residents: ConcurrentWeakSet[Resident] = ConcurrentWeakSet()


def enter(resident: Resident) -> None:
    """Make a resident known, or known again after it was rebuilt."""
    _residents.add(resident)


def living() -> list[Resident]:
    """All that are not evicted, the least recently used first."""
    present = [resident for resident in _residents if resident.compiled is not None]
    return sorted(present, key=lambda resident: resident.used)


def evict(among: Container[Any]) -> bool:
    """Evict the least recently used of the idle executables in `among`; whether there was one."""
    for resident in living():
        compiled = resident.compiled
        if compiled is not None and compiled.executable in among and resident.evict():
            return True
    return False


def shrink(budget: int, keep: Resident | None = None) -> None:
    """Evict until what residents hold is within `budget` bytes, or all but `keep` are in use."""
    present = living()
    for resident in present:
        if held(present) <= budget:
            return
        if resident is not keep:
            resident.evict()


def held(present: Iterable[Resident]) -> int:
    """The bytes that residents hold; what they share counts once."""
    pieces: dict[Hashable, int] = {}
    for resident in present:
        pieces.update(resident.pieces())
    return sum(pieces.values())
