"""The executable cache: when memory is short, the least recently used are closed.

A function whose executable was closed keeps the plan, and builds the executable again at its next
call. An executable in use is never closed.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Container, Hashable, Iterable, Mapping
from typing import Any, Literal

from tracegraph.concurrency.weak_set import ConcurrentWeakSet
from tracegraph.staging.calls.clock import clock
from tracegraph.staging.stages import Compiled, Lowered

COUNTS = ("launches", "updates", "bytes_copied")


class CachedExecutable:
    """An executable of a jitted function. `compiled` is None while it is evicted.

    `used` is the time of its last use, by `clock`. `made` is that of the use for which it was
    built, and what was done for that; `because` what had changed since the build before. `found` is
    the last use that was not recognised by a fast call.
    """

    __slots__ = (
        "__weakref__",
        "_past",
        "because",
        "compiled",
        "evictions",
        "found",
        "lowered",
        "made",
        "used",
    )

    def __init__(self, compiled: Compiled) -> None:
        self.lowered: Lowered = compiled.lowered
        self.compiled: Compiled | None = compiled
        self.used = self.found = clock()
        self.made: tuple[float, Literal["traced", "built"]] = (0.0, "traced")
        self.because = ""
        self.evictions = 0
        self._past: Counter[str] = Counter()

    def evict(self) -> bool:
        """Close the executable, unless a call is using it; whether it was closed."""
        # It is closed first, and forgotten then: else a call might build another one meanwhile.
        compiled = self.compiled
        if compiled is None or not compiled.executable.close_idle():
            return False
        self.lost(compiled)
        return True

    def lost(self, compiled: Compiled) -> bool:
        """Whether `compiled` was closed, by an eviction or a reset; if so, forget it."""
        if not compiled.executable.closed:
            return False
        with _lock:
            if self.compiled is compiled:
                self.compiled = None
                self.evictions += 1
                self._count(compiled)
        return True

    def close_idle(self) -> bool:
        """Close the executable for good, unless a call is using it; whether it is closed."""
        compiled = self.compiled
        if compiled is not None:
            if not compiled.executable.close_idle():
                return False
            self.close()
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
        with _lock:  # an executable that is lost is counted once: as present, or as past
            compiled = self.compiled
            counts = {} if compiled is None else compiled.stats()
            return {name: self._past[name] + counts.get(name, 0) for name in COUNTS}

    def pieces(self) -> Mapping[Hashable, int]:
        """The memory it holds, as `Executable.pieces` has it."""
        compiled = self.compiled
        return {} if compiled is None else compiled.executable.pieces()


_lock = threading.Lock()
_cached: ConcurrentWeakSet[CachedExecutable] = ConcurrentWeakSet()


def enter(cached: CachedExecutable) -> None:
    """Enter an executable that was built, or built again."""
    _cached.add(cached)


def least_recent_first() -> list[CachedExecutable]:
    """All that are not evicted, the least recently used first."""
    present = [cached for cached in _cached if cached.compiled is not None]
    return sorted(present, key=lambda cached: cached.used)


def evict(among: Container[Any]) -> bool:
    """Evict the least recently used of the idle executables in `among`; whether there was one."""
    for cached in least_recent_first():
        compiled = cached.compiled
        if compiled is not None and compiled.executable in among and cached.evict():
            return True
    return False


def shrink(budget: int, keep: CachedExecutable | None = None) -> None:
    """Evict until what executables hold is within `budget` bytes, or all but `keep` are in use."""
    present = least_recent_first()
    for cached in present:
        if held(present) <= budget:
            return
        if cached is not keep:
            cached.evict()


def held(present: Iterable[CachedExecutable]) -> int:
    """The bytes that executables hold; what they share counts once."""
    pieces: dict[Hashable, int] = {}
    for cached in present:
        pieces.update(cached.pieces())
    return sum(pieces.values())
