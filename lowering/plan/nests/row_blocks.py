"""How many blocks share a row."""

from __future__ import annotations

MAX_CLUSTER_BLOCKS = 8
"""Blocks that may share a row: the largest cluster that every device with clusters can run."""

MIN_ROW_SHARE = 4096
"""Elements of a row for each of the blocks that share it: 16 for each of 256 threads."""


def row_blocks(steps: int) -> int:
    """The most blocks that share a row of this many elements.

    >>> [row_blocks(steps) for steps in (4096, 10_000, 1_000_000)]
    [1, 2, 8]
    """
    return min(max(steps // MIN_ROW_SHARE, 1), MAX_CLUSTER_BLOCKS)
