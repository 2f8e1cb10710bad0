"""Partition: how blocks of threads divide tridiagonal systems."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.ir.record import record

MOST_ROWS = {4: 8, 8: 8, 16: 4}
"""Rows of a lane, at most, by the bytes of an element: registers hold their factors."""
MOST_LANES = 512
"""Of one system in a block, at most: with the registers that each needs."""
SPAN = 128
"""Lanes of a block where several share a system."""
SHARED_BYTES = 48 << 10
"""What a block may use without asking."""
THREADS = 64
"""Of a block with several systems."""


@record
class Partition:
    """How blocks divide systems: rows and lanes of the .cuh, and columns that one pass solves."""

    rows: int
    lanes: int
    columns: int

    @property
    def threads(self) -> int:
        """Those of a block."""
        return max(self.lanes, THREADS)

    @property
    def span(self) -> int:
        """Rows of the lanes that share a system or a part of one."""
        return self.rows * self.lanes

    def shared_bytes(self, dtype: np.dtype[Any]) -> int:
        """Of a block: its rows, or slots of lanes; both are an odd number of elements apart."""
        slots = self.threads + self.threads // self.lanes
        slot = 2 * (4 + self.columns) | 1
        return dtype.itemsize * max(self.threads * (self.rows | 1), slots * slot)


def partition_of(dtype: np.dtype[Any], n: int, columns: int) -> Partition:
    """The partition of systems of n rows: of one block each, as long as that suffices."""
    most = MOST_ROWS[dtype.itemsize]
    together = 1 if columns == 1 else max(1, min(4, 16 // dtype.itemsize))
    lanes = 1 << (-(-n // most) - 1).bit_length()
    one = Partition(max(2, -(-n // lanes)), lanes, together)
    if lanes <= MOST_LANES and one.shared_bytes(dtype) <= SHARED_BYTES:
        return one
    return Partition(most, SPAN, together)
