"""The shape of clusters: how many blocks of how many threads keep a row in their registers.

While the blocks of one cluster wait for each other, and for memory, others load and store. So what
counts is how much of the rows the registers of a multiprocessor hold at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from lowering.codegen.geometry_records import FULL_DEVICE
from lowering.codegen.nest_kinds import CanonicalNest
from lowering.codegen.rows.row_geometry import row_width, steps_kept, steps_of_lane, widest
from lowering.fusion.access_patterns import loop_is_contiguous
from lowering.fusion.row_passes import MOST_CLUSTER, most_shares
from lowering.hardware import WORD_BYTES
from lowering.plan.kernel import RowNest
from lowering.plan.rounding import ceil_div, power_of_two, round_up, share_of

MOST_ROW_THREADS = 1024  # of a block that has rows to itself
MOST_WIDE_THREADS = 256
"""The same where elements are wide: more would leave too few registers to each, or be one block."""
WIDE_RESIDENT = 3
"""Blocks of so many threads that run at a time. Left alone, compilers choose to spill for more."""
CLUSTERS = (2, 4, MOST_CLUSTER)
THREADS = (256, 512)  # of a block of a cluster
REGISTERS = 1 << 16  # of a multiprocessor
REGISTER_UNIT = 8  # threads get so many at a time
MOST_REGISTERS = 255  # of a thread
WORKING = {1: 40, 2: 40, 4: 14, 8: 24, 16: 48}
"""Registers that a thread computes with, by the bytes of an element, as compilers need them."""
MOST_WORDS = 64
"""Registers with elements that count: with more, threads are few, and their steps take long."""


def most_steps(nbytes: int) -> int:
    """The steps of which a lane of a cluster may keep values of so many bytes: narrow ones share
    registers.
    """
    return 112 if nbytes < WORD_BYTES else 64


def cluster_of(nest: CanonicalNest) -> int:
    """The blocks that are to share each row.

    They are several where passes over contiguous rows need more than one block can keep.
    """
    return _cluster(nest)[0] if isinstance(nest, RowNest) and _is_long(nest) else 1


def cluster_threads(nest: RowNest) -> int:
    """The threads of each of the blocks that share a row."""
    return _cluster(nest)[1]


def resident_blocks(nests: Sequence[CanonicalNest], threads: int, cluster: int) -> int:
    """The blocks that each multiprocessor should run at a time, for which the compiler has to save
    registers. 1 if any will do.
    """
    rows = [nest for nest in nests if isinstance(nest, RowNest)]
    long = [_Row.of(nest).resident(cluster, threads) for nest in rows if _is_long(nest)]
    if not long and threads == MOST_WIDE_THREADS and any(map(_keeps_most, rows)):
        return WIDE_RESIDENT
    return max(min(long, default=1), 1)


def most_row_threads(nest: RowNest) -> int:
    """The most threads of a block that has contiguous rows of several passes to itself."""
    return MOST_ROW_THREADS if widest(nest) <= WORD_BYTES else MOST_WIDE_THREADS


def _keeps_most(nest: RowNest) -> bool:
    """Whether lanes keep more than half of the eight-byte elements that they may."""
    if len(nest.passes) == 1 or widest(nest) != 8 or not loop_is_contiguous(nest):
        return False
    steps = prod(nest.loop)
    lanes = min(MOST_WIDE_THREADS, power_of_two(ceil_div(steps, steps_of_lane(nest, 1))))
    return steps_kept(nest) // 2 < ceil_div(steps, lanes) <= steps_kept(nest)


def _is_long(nest: RowNest) -> bool:
    """Whether several passes are made over rows that one block cannot keep."""
    if len(nest.passes) == 1 or not prod(nest.space):
        return False
    return prod(nest.loop) > most_row_threads(nest) * steps_kept(nest) and loop_is_contiguous(nest)


def _cluster(nest: RowNest) -> tuple[int, int]:
    """The blocks that share a row, and the threads of each: such that several are resident, and as
    much as possible is in flight; then few blocks, for they wait for each other. As many as may be
    where no registers hold the row.
    """
    row = _Row.of(nest)
    busy = power_of_two(min(ceil_div(FULL_DEVICE, prod(nest.space)), most_shares(row.steps)))
    shapes = product((blocks for blocks in CLUSTERS if blocks >= busy), THREADS)
    fitting = [shape for shape in shapes if row.resident(*shape)]

    def rank(shape: tuple[int, int]) -> tuple[bool, int, int, int]:
        cluster, threads = shape
        words = min(row.words(cluster * threads), MOST_WORDS)
        resident = row.resident(cluster, threads)
        return resident > 1, resident * threads * words, -cluster, threads

    return max(fitting, key=rank, default=(MOST_CLUSTER, THREADS[-1]))


@dataclass(frozen=True, slots=True)
class _Row:
    """The steps of a row, how many of them are accessed as one, and an element's bytes at most."""

    steps: int
    width: int
    nbytes: int

    @classmethod
    def of(cls, nest: RowNest) -> _Row:
        return cls(prod(nest.loop), row_width(nest), widest(nest))

    def items(self, lanes: int) -> int:
        """The steps of each of so many lanes."""
        return share_of(self.steps, lanes, self.width)

    def words(self, lanes: int) -> int:
        """The registers that hold one value of each of a lane's elements."""
        return ceil_div(self.items(lanes) * max(self.nbytes, WORD_BYTES // self.width), WORD_BYTES)

    def resident(self, cluster: int, threads: int) -> int:
        """The blocks whose registers a multiprocessor has; none if a thread has too few."""
        lanes = cluster * threads
        needed = self.words(lanes) + WORKING[self.nbytes]
        if needed > MOST_REGISTERS or self.items(lanes) > most_steps(self.nbytes):
            return 0
        return REGISTERS // (threads * round_up(needed, REGISTER_UNIT))
