"""Weight of a node: what an estimate of its run time is made from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from typing import NamedTuple

from lowering.plan.nests.analysis import nest_reads, nest_writes
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Nest, PrintNest, ReduceNest, RowNest


class Weight(NamedTuple):
    """What a node does when it runs.

    `points` counts the points of a kernel's nests, each step of a loop included; `nbytes` what is
    read and written; `operations` the floating-point operations of a library call.
    """

    points: int = 0
    nbytes: int = 0
    operations: int = 0


def weight_of(nests: Iterable[Nest]) -> Weight:
    """The weight of the nests of a kernel, with at most one element of a buffer at each point."""
    total = nbytes = 0
    for nest in nests:
        total += _points(nest)
        nbytes += sum(moved for _, moved in traffic(nest))
    return Weight(total, nbytes)


def traffic(nest: Nest) -> Iterator[tuple[Buffer, int]]:
    """The buffers that a nest reads and those that it writes, with the bytes of each."""
    points = _points(nest)
    for buffer in (*nest_reads(nest), *nest_writes(nest)):
        type_ = buffer.type
        small = type_.size < points
        yield buffer, type_.nbytes if small else points * type_.dtype.itemsize


def _points(nest: Nest) -> int:
    if isinstance(nest, PrintNest):
        return sum(prod(a.shape) for a in nest.arguments)
    loop = nest.loop if isinstance(nest, (ReduceNest, RowNest)) else ()
    return prod(nest.space) * prod(loop)
