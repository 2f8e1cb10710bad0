"""Holdings: bytes of device memory in use, by purpose, counted as memory comes and goes."""

from __future__ import annotations

import threading
from collections import deque
from typing import Literal
from weakref import ref

from lowering.cuda.interface import Allocation

Purpose = Literal["arrays", "arenas", "constants"]


class _Entry(ref[Allocation]):
    """A weak reference to memory, with its purpose and size."""

    __slots__ = ("nbytes", "purpose")

    purpose: Purpose
    nbytes: int


class Holdings:
    """Bytes in use by purpose, and their high-water mark. Threads may use it concurrently.

    Memory may be collected anywhere, also in the thread that holds the lock. So its entry is only
    queued then, and subtracted at the next look, which costs the same however much is alive.
    """

    def __init__(self) -> None:
        self.high_water = 0
        self._bytes: dict[Purpose, int] = {"arrays": 0, "arenas": 0, "constants": 0}
        self._living: set[_Entry] = set()
        self._dead: deque[_Entry] = deque()
        self._on_death = self._dead.append  # no Python code runs when memory dies
        self._lock = threading.RLock()  # a finalizer that runs under it may allocate

    def enter(self, memory: Allocation, purpose: Purpose, nbytes: int) -> None:
        """Count memory for as long as it lives."""
        entry = _Entry(memory, self._on_death)
        entry.purpose, entry.nbytes = purpose, nbytes
        with self._lock:
            self._living.add(entry)
            self._bytes[purpose] += nbytes
            self._count_dead()
            self.high_water = max(self.high_water, sum(self._bytes.values()))

    @property
    def held(self) -> dict[Purpose, int]:
        """Bytes in use by purpose."""
        with self._lock:
            self._count_dead()
            return dict(self._bytes)

    def _count_dead(self) -> None:
        while True:
            try:
                entry = self._dead.popleft()
            except IndexError:
                return
            self._living.discard(entry)
            self._bytes[entry.purpose] -= entry.nbytes
