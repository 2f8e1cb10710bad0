"""Living: a set that objects leave when they die."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Living(Generic[T]):
    """Objects, each for as long as it lives elsewhere. They are hashed by identity or as they say.

    Threads may use it at will: objects come and go by single operations on a dict, and an iteration
    goes over those that were there when it began. A `weakref.WeakSet` raises when it grows
    meanwhile.
    """

    __slots__ = ("_references",)

    def __init__(self) -> None:
        self._references: dict[weakref.ref[T], None] = {}

    def add(self, item: T) -> None:
        """Enter an object; one that is there already stays there once."""
        self._references[weakref.ref(item, self._references.pop)] = None

    def __iter__(self) -> Iterator[T]:
        found = [reference() for reference in list(self._references)]
        return iter([item for item in found if item is not None])

    def __len__(self) -> int:
        return sum(1 for _ in self)
