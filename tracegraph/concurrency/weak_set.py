"""A weak set for several threads."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class ConcurrentWeakSet(Generic[T]):
    """A set of weak references to objects, which leave it when they die.

    Unlike `weakref.WeakSet`, it may change while it is iterated: objects come and go by single
    operations on a dict, and an iteration sees the objects that were there when it began.
    """

    __slots__ = ("_references",)

    def __init__(self) -> None:
        self._references: dict[weakref.ref[T], None] = {}

    def add(self, item: T) -> None:
        """Add an object; adding it twice is adding it once."""
        self._references[weakref.ref(item, self._references.pop)] = None

    def __iter__(self) -> Iterator[T]:
        found = [reference() for reference in list(self._references)]
        return iter([item for item in found if item is not None])

    def __len__(self) -> int:
        return sum(1 for _ in self)
