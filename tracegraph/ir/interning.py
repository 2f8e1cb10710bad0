"""Interning: of equal objects there is one, for as long as someone holds it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import RLock
from typing import Any
from weakref import ref

MOST_DEAD = 256
"""Entries of dead objects that may be left: they hold what is in their keys."""


class _Entry(ref[Any]):
    """A weak reference that knows the key of its object, and whether it is the entry of that."""

    __slots__ = ("is_entered", "key")

    is_entered: bool
    key: Hashable


class Interned:
    """The objects made so far, by what they are made of, held weakly. Threads may ask at once.

    Objects die anywhere, also in the thread that holds the lock: then their entries are only noted,
    to be removed many at once. Nothing is created under the lock that the garbage collector tracks:
    no finalizer runs there, which might wait for other locks.
    """

    def __init__(self) -> None:
        self._entries: dict[Hashable, _Entry] = {}
        self._lock = RLock()
        self._dead: list[_Entry] = []
        self._on_death = self._dead.append  # no Python code runs when an object dies
        self.entry: Callable[[Hashable], ref[Any] | None] = self._entries.get
        """The weak reference to the object of a key, dead or alive, or None. It is asked for all
        the time, hence it is the dict's own method."""

    def get(self, key: Hashable) -> Any:
        """The object of a key, or None."""
        entry = self._entries.get(key)
        return None if entry is None else entry()

    def add(self, key: Hashable, new: Any) -> Any:
        """`new` as the object of a key, or the one that another thread has added."""
        if len(self._dead) >= MOST_DEAD:
            self._remove_dead()
        entry = _Entry(new, self._on_death)
        entry.key, entry.is_entered = key, False
        if self._entries.setdefault(key, entry) is entry:
            entry.is_entered = True
            return new
        with self._lock:  # no thread replaces or removes the entry that was found meanwhile
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
            while self._dead:  # what an entry's key held may die with it, and is noted then
                entry = self._dead.pop()
                if entry.is_entered:
                    del self._entries[entry.key]
