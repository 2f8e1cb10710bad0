"""Interning (hash consing): one object for all equal ones, held weakly."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import RLock
from typing import Any
from weakref import ref

MOST_DEAD = 256
"""Entries of dead objects that may remain. They keep alive what their keys hold."""


class _Entry(ref[Any]):
    """A weak reference with the key of its object, and whether the table has it."""

    __slots__ = ("is_entered", "key")

    is_entered: bool
    key: Hashable


class Interned:
    """A weak table of objects by what they are made of. Several threads may use it.

    An object may die in any thread, even in the one that holds the lock. So its entry is only noted
    then, and removed later with others. Under the lock, nothing is created that the garbage
    collector tracks: no finalizer runs there, which might wait for another lock.
    """

    def __init__(self) -> None:
        self._entries: dict[Hashable, _Entry] = {}
        self._lock = RLock()
        self._dead: list[_Entry] = []
        self._on_death = self._dead.append  # no Python code runs when an object dies
        self.entry: Callable[[Hashable], ref[Any] | None] = self._entries.get
        """The weak reference to the object of a key, dead or alive, or None: the dict's own method,
        as it is on the hot path of tracing and planning."""

    def get(self, key: Hashable) -> Any:
        """The object of a key, or None."""
        entry = self._entries.get(key)
        return None if entry is None else entry()

    def add(self, key: Hashable, new: Any) -> Any:
        """The object of a key: `new`, or the one that another thread has added."""
        if len(self._dead) >= MOST_DEAD:
            self._remove_dead()
        entry = _Entry(new, self._on_death)
        entry.key, entry.is_entered = key, False
        if self._entries.setdefault(key, entry) is entry:
            entry.is_entered = True
            return new
        with self._lock:  # no other thread replaces or removes the entry that is found
            known = self._entries.setdefault(key, entry)
            found = known()
            if found is None:
                known.is_entered = False
                self._entries[key] = entry
                found = new
            if found is new:
                entry.is_entered = True
        return found

    def _remove_dead(self) -> None:
        with self._lock:
            while self._dead:  # what the key held may die with it, and is appended
                entry = self._dead.pop()
                if entry.is_entered:
                    del self._entries[entry.key]
