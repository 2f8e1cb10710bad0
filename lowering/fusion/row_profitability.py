"""Profitability of row passes: when fused passes are faster than separate kernels.

Fused passes read a row once if registers can keep it, and save a kernel (0.7 µs). But a row is then
one block's or one cluster's, so that few rows leave multiprocessors idle; and passes may access
memory uncoalesced where a map of its own would transpose in shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from lowering.plan.nests.access_patterns import loop_is_contiguous, uncoalesced_accesses
from lowering.plan.nests.analysis import as_rows
from lowering.plan.nests.kernel import Nest, ReduceNest, RowNest
from lowering.plan.nests.row_blocks import row_blocks
from lowering.plan.target.hardware import SECTOR_BYTES
from lowering.plan.target.target import FusionPolicy

MANY_ROWS = 512
"""Rows that occupy a device with one block each: four for each of an H200's 132 multiprocessors."""

MAX_KEPT_ROW = 1 << 17
"""Elements of a row that the registers of a cluster hold, of any dtype, so that it is read once: 64
for each of 256 threads of 8 blocks."""

MIN_CLUSTER_BLOCKS = 128
"""Blocks of rows shared by clusters from which one kernel is faster than one for each pass.

A softmax of 16 rows of 50,257 float32, which 128 blocks share, took 13.2 µs instead of 19.0, and of
256 rows 45.7 instead of 98.9 (H200).
"""

MAX_KEPT_COLUMN = 512
"""Elements of a column that registers hold. A block has `BLOCK_COLUMNS` of them: as many elements
as a block of a cluster has of the longest row."""

MANY_COLUMNS = 8192
"""Columns from which one kernel is faster although each pass reads them anew. With up to some
thousands, separate kernels were faster (H200)."""

MAX_SHORT = 1 << 14
"""Elements in all up to which a few blocks are fast enough: two of `MAX_SHORT_BLOCK`."""

MAX_SHORT_BLOCK = 1 << 13
"""Elements of one block of these. A block moves 80 GB/s. Another kernel takes 0.7 µs, and its
reduction, which all blocks share, half a microsecond longer: in that time a block moves 96 KB,
three accesses to 8,000 elements of four bytes (H200)."""

MIN_UNCOALESCED_POINTS = 1 << 13
"""Points from which uncoalesced accesses are counted. Below, a dozen of them move 3 MB in sectors,
which takes no longer than another kernel: 0.7 µs at 4.2 TB/s (H200)."""

BLOCK_COLUMNS = 32
"""Neighbouring columns of one block: a warp accesses one element of each."""


def adds_uncoalesced(rows: RowNest, parts: Sequence[Nest], policy: FusionPolicy) -> bool:
    """Whether rows are slower than the parts, by the uncoalesced accesses that they add."""
    if prod((*rows.space, *rows.loop)) < MIN_UNCOALESCED_POINTS:
        return False
    nbytes = _uncoalesced_bytes(rows)
    if nbytes <= policy.strided_bytes:
        return False
    folding = [as_rows(n) for n in parts if isinstance(n, ReduceNest | RowNest)]
    return nbytes - sum(map(_uncoalesced_bytes, folding)) > policy.strided_bytes


def _uncoalesced_bytes(rows: RowNest) -> float:
    """Bytes that rows move beyond those of a map that transposes in shared memory.

    Rows move a sector for each element. The map moves each element once, and stores and loads it
    once more since it is a kernel of its own.
    """
    total = 0.0
    for access, nbytes in uncoalesced_accesses(rows).items():
        times = SECTOR_BYTES / access.buffer.type.dtype.itemsize - 1 - 2
        total += nbytes * max(times, 0)
    return total


def occupies_device(rows: RowNest) -> bool:
    """Whether several passes over these rows are faster in one kernel than in one for each."""
    outputs, steps = prod(rows.space), prod(rows.loop)
    together = steps * min(outputs, BLOCK_COLUMNS)
    if outputs * steps <= MAX_SHORT and together <= MAX_SHORT_BLOCK:
        return True
    contiguous = loop_is_contiguous(rows)
    if contiguous and outputs * steps <= MAX_SHORT and steps <= MAX_SHORT_BLOCK:
        return True
    if not contiguous:
        return outputs >= (MANY_ROWS if steps <= MAX_KEPT_COLUMN else MANY_COLUMNS)
    if steps > MAX_KEPT_ROW:
        return outputs >= MANY_ROWS
    return outputs * row_blocks(steps) >= MIN_CLUSTER_BLOCKS
