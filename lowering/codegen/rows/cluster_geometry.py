"""Cluster geometry: how many blocks of how many threads keep a row in registers.

While the blocks of one cluster wait for each other, and for memory, others load and store. So the
aim is to hold as much of the rows in the registers of a multiprocessor as possible. Softmax over
rows of 100,000 reaches 87 % of a copy of float32 and 69 to 78 of other floats (H200).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from lowering.codegen.geometry_records import FULL_DEVICE
from lowering.codegen.nest_kinds import CanonicalNest
from lowering.codegen.rows.row_geometry import row_width, steps_kept, steps_of_lane, widest
from lowering.plan.nests.access_patterns import loop_is_contiguous
from lowering.plan.nests.kernel import RowNest
from lowering.plan.nests.rounding import ceil_div, power_of_two, round_up, share_of
from lowering.plan.nests.row_blocks import MAX_CLUSTER_BLOCKS, row_blocks
from lowering.plan.target.hardware import (
    MAX_BLOCK_THREADS,
    MAX_REGISTERS,
    REGISTER_UNIT,
    REGISTERS,
    WORD_BYTES,
)
from tracegraph.generated.dataclass import dataclass

MAX_WIDE_THREADS = 256
"""Threads of a block whose rows have elements of more than a word: 85 registers for each."""

WIDE_RESIDENT = 3
"""Resident blocks of MAX_WIDE_THREADS. Without the bound, the compiler spills for a fourth:
softmax over rows of 2048 float64 reaches 96 % of a copy instead of 48 (H200)."""

CLUSTERS = (2, 4, MAX_CLUSTER_BLOCKS)
"""Blocks of a cluster. More than 8 is not portable."""

THREADS = (256, 512)
"""Threads of a block of a cluster."""

WORKING = {1: 40, 2: 40, 4: 14, 8: 24, 16: 48}
"""Registers of a thread besides its elements, by the bytes of an element, read off compiled code.
"""

MAX_WORDS = 64
"""Registers with elements up to which more are better: beyond, too few threads are resident."""


def max_kept_steps(nbytes: int) -> int:
    """The steps of which a lane of a cluster may keep values of `nbytes`: narrow ones share
    registers. 64 words take a quarter of a thread's registers, eight-byte values half of them.
    """
    return 112 if nbytes < WORD_BYTES else 64


def cluster_of(nest: CanonicalNest) -> int:
    """The blocks that share each row: several if passes over contiguous rows need more than the
    registers of one block.
    """
    return _cluster(nest)[0] if isinstance(nest, RowNest) and _is_long(nest) else 1


def cluster_threads(nest: RowNest) -> int:
    """The threads of each of the blocks that share a row."""
    return _cluster(nest)[1]


def resident_blocks(nests: Sequence[CanonicalNest], threads: int, cluster: int) -> int:
    """The resident blocks that the compiler has to leave registers for; 1 if it may choose."""
    rows = [nest for nest in nests if isinstance(nest, RowNest)]
    long = [_Row.of(nest).resident(cluster, threads) for nest in rows if _is_long(nest)]
    if not long and threads == MAX_WIDE_THREADS and any(map(_keeps_most, rows)):
        return WIDE_RESIDENT
    return max(min(long, default=1), 1)


def max_row_threads(nest: RowNest) -> int:
    """The most threads of a block that alone makes several passes over contiguous rows."""
    return MAX_BLOCK_THREADS if widest(nest) <= WORD_BYTES else MAX_WIDE_THREADS


def _keeps_most(nest: RowNest) -> bool:
    """Whether lanes keep more than half of the eight-byte elements that they may keep."""
    if len(nest.passes) == 1 or widest(nest) != 8 or not loop_is_contiguous(nest):
        return False
    steps = prod(nest.loop)
    lanes = min(MAX_WIDE_THREADS, power_of_two(ceil_div(steps, steps_of_lane(nest, 1))))
    return steps_kept(nest) // 2 < ceil_div(steps, lanes) <= steps_kept(nest)


def _is_long(nest: RowNest) -> bool:
    """Whether several passes are made over rows that one block cannot keep in registers."""
    if len(nest.passes) == 1 or not prod(nest.space):
        return False
    return prod(nest.loop) > max_row_threads(nest) * steps_kept(nest) and loop_is_contiguous(nest)


def _cluster(nest: RowNest) -> tuple[int, int]:
    """The blocks that share a row, and the threads of each.

    First, several blocks are resident; then, as much as possible is in flight; then, blocks are
    few, since they wait for each other. The largest cluster where no registers hold the row.
    """
    row = _Row.of(nest)
    busy = power_of_two(min(ceil_div(FULL_DEVICE, prod(nest.space)), row_blocks(row.steps)))
    shapes = product((blocks for blocks in CLUSTERS if blocks >= busy), THREADS)
    fitting = [shape for shape in shapes if row.resident(*shape)]

    def rank(shape: tuple[int, int]) -> tuple[bool, int, int, int]:
        cluster, threads = shape
        words = min(row.words(cluster * threads), MAX_WORDS)
        resident = row.resident(cluster, threads)
        return resident > 1, resident * threads * words, -cluster, threads

    return max(fitting, key=rank, default=(MAX_CLUSTER_BLOCKS, THREADS[-1]))


@dataclass(frozen=True, slots=True)
class _Row:
    """The steps of a row, the width of its vectors, and the bytes of its widest element."""

    steps: int
    width: int
    nbytes: int

    @classmethod
    def of(cls, nest: RowNest) -> _Row:
        return cls(prod(nest.loop), row_width(nest), widest(nest))

    def items(self, lanes: int) -> int:
        """The steps of each lane."""
        return share_of(self.steps, lanes, self.width)

    def words(self, lanes: int) -> int:
        """The registers that hold one value for each step of a lane."""
        return ceil_div(self.items(lanes) * max(self.nbytes, WORD_BYTES // self.width), WORD_BYTES)

    def resident(self, cluster: int, threads: int) -> int:
        """The blocks that fit the registers of a multiprocessor; 0 if a thread has too few."""
        lanes = cluster * threads
        needed = self.words(lanes) + WORKING[self.nbytes]
        if needed > MAX_REGISTERS or self.items(lanes) > max_kept_steps(self.nbytes):
            return 0
        return REGISTERS // (threads * round_up(needed, REGISTER_UNIT))
