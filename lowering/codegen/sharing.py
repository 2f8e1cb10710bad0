"""Sharing of rows by clusters: how many blocks of how many threads keep a row in their registers.

While the blocks of one cluster wait for each other, and for memory, others load and store. So what
counts is how much of the rows the registers of a multiprocessor hold at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from lowering.codegen.plain import PlainNest
from lowering.codegen.rounding import ceil_div, power_of_two
from lowering.codegen.row_shape import row_width, steps_kept, widest
from lowering.codegen.shapes import FULL_DEVICE
from lowering.contiguity import WORD_BYTES, loop_is_contiguous
from lowering.kernel import RowNest
from lowering.rows import MOST_CLUSTER, most_shares

MOST_ROW_THREADS = 1024  # of a block that has rows to itself
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


def cluster_of(nest: PlainNest) -> int:
    """The blocks that are to share each row.

    They are several where passes over contiguous rows need more than one block can keep.
    """
    return _cluster(nest)[0] if isinstance(nest, RowNest) and _is_long(nest) else 1


def cluster_threads(nest: RowNest) -> int:
    """The threads of each of the blocks that share a row."""
    return _cluster(nest)[1]


def resident_blocks(nests: Sequence[PlainNest], threads: int, cluster: int) -> int:
    """The blocks that each multiprocessor should run at a time, for which the compiler has to save
    registers. 1 if any will do.
    """
    rows = [nest for nest in nests if isinstance(nest, RowNest) and _is_long(nest)]
    return max(min((_resident(nest, cluster, threads) for nest in rows), default=1), 1)


def _is_long(nest: RowNest) -> bool:
    """Whether several passes are made over rows that one block cannot keep."""
    long = prod(nest.loop) > MOST_ROW_THREADS * steps_kept(nest)
    return long and len(nest.passes) > 1 and prod(nest.space) > 0 and loop_is_contiguous(nest)


def _cluster(nest: RowNest) -> tuple[int, int]:
    """The blocks that share a row, and the threads of each: such that several are resident, and as
    much as possible is in flight; then few blocks, for they wait for each other. As many as may be
    where no registers hold the row.
    """
    points, steps = prod(nest.space), prod(nest.loop)
    busy = power_of_two(min(ceil_div(FULL_DEVICE, points), most_shares(steps)))
    shapes = product((blocks for blocks in CLUSTERS if blocks >= busy), THREADS)
    fitting = [shape for shape in shapes if _resident(nest, *shape)]

    def rank(shape: tuple[int, int]) -> tuple[bool, int, int, int]:
        cluster, threads = shape
        words = min(_words(nest, cluster * threads), MOST_WORDS)
        resident = _resident(nest, cluster, threads)
        return resident > 1, resident * threads * words, -cluster, threads

    return max(fitting, key=rank, default=(MOST_CLUSTER, THREADS[-1]))


def _resident(nest: RowNest, cluster: int, threads: int) -> int:
    """The blocks whose registers a multiprocessor has; none if a thread cannot keep its part."""
    lanes, nbytes = cluster * threads, widest(nest)
    needed = _words(nest, lanes) + WORKING[nbytes]
    if needed > MOST_REGISTERS or _items(nest, lanes) > most_steps(nbytes):
        return 0
    return REGISTERS // (threads * ceil_div(needed, REGISTER_UNIT) * REGISTER_UNIT)


def _words(nest: RowNest, lanes: int) -> int:
    """The registers that hold one value of each of a lane's elements."""
    nbytes = max(widest(nest), WORD_BYTES // row_width(nest))
    return ceil_div(_items(nest, lanes) * nbytes, WORD_BYTES)


def _items(nest: RowNest, lanes: int) -> int:
    """The steps of a lane."""
    width = row_width(nest)
    return ceil_div(prod(nest.loop), lanes * width) * width
