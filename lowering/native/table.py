"""The table of addresses that native code is called with, as data: what is at which place.

The code itself has no addresses, so that it can be kept in files.
"""

from __future__ import annotations

from collections.abc import Hashable

from lowering.plan.nests.buffer import Buffer
from lowering.plan.plan import Plan

TRAMPOLINE = "trampoline"
"""The entry of the function that calls the host."""


class Table:
    """Entries by what they are: buffers outside of the arena, and names of functions."""

    def __init__(self, plan: Plan) -> None:
        self._places: dict[Hashable, int] = {TRAMPOLINE: 0}
        for buffer in (*plan.inputs, *plan.outputs, *[buffer for buffer, _ in plan.constants]):
            self.place(buffer)

    def place(self, entry: Buffer | str) -> int:
        """The place of an entry, which is added if it is new."""
        return self._places.setdefault(entry, len(self._places))

    @property
    def names(self) -> list[str]:
        """The names among the entries."""
        return [entry for entry in self._places if isinstance(entry, str)]

    def __len__(self) -> int:
        return len(self._places)
