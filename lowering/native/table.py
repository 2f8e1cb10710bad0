"""The table of addresses that native code is called with, as data: what is at which place.

The code itself has no addresses, so that it can be kept in files.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Hashable

import numpy as np

from lowering.native.writer import Writer
from lowering.plan.nests.buffer import Buffer
from lowering.plan.plan import Plan

ARENA = "arena"
"""The entry of the scratch memory."""

TRAMPOLINE = "trampoline"
"""The entry of the function that calls the host."""

POOL, RUN_CHUNKS = "pool", "run chunks"
"""The entries of the pool of threads, and of its function that runs the chunks of a nest."""


def _data_offset() -> int:
    """Where an array object has the address of its elements, as NumPy's C interface says."""
    array = np.zeros(1)
    words = ctypes.string_at(id(array), np.ndarray.__basicsize__)
    return words.index(array.ctypes.data.to_bytes(ctypes.sizeof(ctypes.c_void_p), sys.byteorder))


DATA_OFFSET = _data_offset()


class Table:
    """Entries by what they are: buffers outside of the arena, and names of functions.

    Arguments and results come in a row; the entry of each is the address of its array object.
    """

    def __init__(self, plan: Plan) -> None:
        self._places: dict[Hashable, int] = {ARENA: 0, TRAMPOLINE: 1}
        for buffer in (*plan.inputs, *plan.outputs, *[buffer for buffer, _ in plan.constants]):
            self.place(buffer)

    def place(self, entry: Buffer | str) -> int:
        """The place of an entry, which is added if it is new."""
        return self._places.setdefault(entry, len(self._places))

    def load(self, writer: Writer, entry: str) -> str:
        """Write the load of the address of a name; its register."""
        place = self.place(entry)
        address = writer.assign(f"getelementptr inbounds ptr, ptr %table, i64 {place}")
        return writer.assign(f"load ptr, ptr {address}")

    @property
    def names(self) -> list[str]:
        """The names among the entries."""
        return [entry for entry in self._places if isinstance(entry, str)]

    def __len__(self) -> int:
        return len(self._places)
