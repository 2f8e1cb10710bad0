"""Interning: of equal objects there is one, for as long as someone holds it."""

from __future__ import annotations

from collections.abc import Hashable
from threading import RLock
from typing import Any
from weakref import ref


class _Entry(ref[Any]):
    """A weak reference that knows the key of its object."""

    __slots__ = ("key",)

    key: Hashable


class Interned:
    """The objects made so far, by what they are made of, held weakly. Threads may ask at once.

    Objects die anywhere, also in the thread that holds the lock. Nothing is created under the lock
    that the garbage collector tracks: no finalizer runs there, which might wait for other locks.
    """

    def __init__(self) -> None:
        self._entries: dict[Hashable, _Entry] = {}
        self._lock = RLock()
        self._on_death = self._forget  # one bound method for all entries

    def get(self, key: Hashable) -> Any:
        """The object of a key, or None."""
        entry = self._entries.get(key)
        return None if entry is None else entry()

    def add(self, key: Hashable, new: Any) -> Any:
        """`new` as the object of a key, or the one that another thread has added."""
        entry = _Entry(new, self._on_death)
        entry.key = key
        with self._lock:
            known = self._entries.setdefault(key, entry)
            if known is entry:
                return new
            found = known()
            if found is None:
                self._entries[key] = entry
                found = new
        return found

    def _forget(self, entry: _Entry) -> None:
        with self._lock:
            if self._entries.get(entry.key) is entry:
                del self._entries[entry.key]
