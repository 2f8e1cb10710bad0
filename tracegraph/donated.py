"""Donated: what a call takes from its donated arguments, and gives back if it comes to nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from tracegraph.array import Array


class Donated:
    """The donated Arrays of a call, which are invalid from here on.

    `owned` has the numbers of those leaves whose memory nobody else refers to: no view, no other
    Array, no library that it was handed to. An executable may write to them. Once it may have done
    so, `spent` is true, and what they held is lost.
    """

    __slots__ = ("_taken", "owned", "spent")

    def __init__(self, numbers: Sequence[int], passed: Sequence[Any], leaves: list[Any]) -> None:
        self.spent = False
        arrays = [(n, passed[n]) for n in numbers if isinstance(passed[n], Array)]
        self._taken = [(array, array.memory, array.placement) for _, array in arrays]
        for _, array in arrays:
            array.invalidate()
        # held by the list of leaves, and by what was taken: another thread that has got hold of the
        # memory before holds it, too
        alone = _ALONE + 1
        self.owned = frozenset(n for n, _ in arrays if _references(leaves, n) <= alone)

    def spend(self, write: Callable[[], None]) -> None:
        """Do what overwrites the memory; if that raises an Exception, nothing was written.

        Another interruption may have come too late.
        """
        self.spent = True
        try:
            write()
        except Exception:
            self.spent = False
            raise

    def give_back(self) -> None:
        """Make the Arrays valid again, unless what they held is lost."""
        if not self.spent:
            for array, memory, placement in self._taken:
                array.memory, array.placement = memory, placement


def _references(leaves: list[Any], number: int) -> int:
    return sys.getrefcount(leaves[number])


_ALONE = _references([object()], 0)
"""The references to what only a list holds; not the same in all versions of Python."""
