"""Donation: a call takes the memory of donated arguments, and gives it back if it fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from tracegraph.arrays.array import Array
from tracegraph.errors import DonatedArrayError


class Donated:
    """The donated Arrays that a call has taken; none at first.

    `owned` has the numbers of the leaves whose memory has no other reference: no view, no other
    Array, no library that it was exported to. An executable may overwrite these. It sets `spent`
    before it does, as their elements are lost then. The caller gives back the rest on an error.
    """

    __slots__ = ("_taken", "owned", "spent")

    def __init__(self) -> None:
        self.spent = False
        self.owned: set[int] = set()
        self._taken: list[tuple[Array, Any, Any, bool]] = []

    def take(
        self, numbers: Sequence[int], passed: Sequence[Any], leaves: list[Any], function: str
    ) -> None:
        """Take the donated Arrays of a call, which are invalid from here on.

        Raises:
            DonatedArrayError: one of them is also passed as another argument.
        """
        for number in numbers:
            array = passed[number]
            if type(array) is not Array:
                continue
            self._taken.append((array, array.memory, array.placement, array.is_local))
            array.invalidate()
            # References: the list of leaves, and what was taken. Another thread may also have one,
            # but none can get one from now on.
            if getrefcount(leaves[number]) <= _ALONE + 1:
                self.owned.add(number)
            elif sum(leaf is leaves[number] for leaf in leaves) > 1:
                raise DonatedArrayError(
                    f"{function} got one Array of type {array.type} as two arguments, at least one "
                    "of them donated; pass a copy, or leave the argument out of donate_argnums"
                )

    def of_blocks(self, blocks: Mapping[int, list[Any]], count: int) -> list[Donated]:
        """What is donated on each of `count` devices, of arguments that they have in blocks.

        `blocks` has those of each number that is owned, in lists that nobody else has.
        """
        found = [Donated() for _ in range(count)]
        for number, own in blocks.items():
            for device in range(count):
                # the argument itself has its blocks as well
                if _references(own, device) <= _ALONE + 1:
                    found[device].owned.add(number)
        return found

    def give_back(self) -> None:
        """Make the Arrays valid again, unless their elements are lost."""
        if not self.spent:
            for array, memory, placement, is_local in self._taken:
                if isinstance(memory, np.ndarray) and not is_local:
                    memory.setflags(write=False)  # it may have been made writable
                array.memory, array.placement = memory, placement
        self.let_go()

    def let_go(self) -> None:
        """Drop the Arrays: a program in flight may keep this object."""
        self._taken.clear()


def _references(leaves: list[Any], number: int) -> int:
    return getrefcount(leaves[number])


_ALONE = _references([object()], 0)
"""The reference count of an object that only a list holds; it differs between Python versions."""
