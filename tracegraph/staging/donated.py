"""Donated: what a call takes from its donated arguments, and gives back if it comes to nothing."""

from __future__ import annotations

from collections.abc import Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from tracegraph.arrays.array import Array
from tracegraph.errors import DonatedArrayError


class Donated:
    """What a call takes, nothing at first: whoever calls gives back what an interrupt leaves.

    `owned` has the numbers of those leaves whose memory nobody else refers to: no view, no other
    Array, no library that it was handed to. An executable may write to them. Once it may have done
    so, `spent` is true, and what they held is lost.
    """

    __slots__ = ("_taken", "owned", "spent")

    def __init__(self) -> None:
        self.spent = False
        self.owned: set[int] = set()
        self._taken: list[tuple[Array, Any, Any]] = []

    def take(
        self, numbers: Sequence[int], passed: Sequence[Any], leaves: list[Any], function: str
    ) -> None:
        """Take the donated Arrays of a call, which are invalid from here on.

        Raises:
            DonatedArrayError: one of them is passed as another argument, too.
        """
        for number in numbers:
            array = passed[number]
            if not isinstance(array, Array):
                continue
            self._taken.append((array, array.memory, array.placement))
            array.invalidate()
            # Held by the list of leaves, and by what was taken. A thread that has got hold of the
            # memory before counts as well, and from now on none does.
            if getrefcount(leaves[number]) <= _ALONE + 1:
                self.owned.add(number)
            elif sum(leaf is leaves[number] for leaf in leaves) > 1:
                raise DonatedArrayError(
                    f"{function} got one Array of type {array.type} as two arguments, at least one "
                    "of them donated; pass a copy, or leave the argument out of donate_argnums"
                )

    def give_back(self) -> None:
        """Make the Arrays valid again, unless what they held is lost."""
        if not self.spent:
            for array, memory, placement in self._taken:
                if isinstance(memory, np.ndarray):
                    memory.setflags(write=False)  # it may have been made ready to be written over
                array.memory, array.placement = memory, placement
        self.let_go()

    def let_go(self) -> None:
        """Hold nothing more: a program in flight may keep this object."""
        self._taken.clear()


def _references(leaves: list[Any], number: int) -> int:
    return getrefcount(leaves[number])


_ALONE = _references([object()], 0)
"""The references to what only a list holds; not the same in all versions of Python."""
