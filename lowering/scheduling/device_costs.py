"""Costs: what nodes of a graph take, in microseconds, and estimates of kernels made from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from operator import attrgetter

from lowering.plan.nodes import Node
from tracegraph.ir.types import ArrayType


@dataclass(frozen=True, slots=True)
class Costs:
    """What a device takes, in µs.

    Fitted to medians on one H200 (driver 580.159, CUDA 13.0): a graph of one kernel 5.9, launch and
    wait included; each further kernel of up to 8 blocks 0.6 to 0.7, of 64 to 512 blocks 0.8 to 0.9;
    a call with an IF node and 1, 3, 8 running sums in each branch 17.6, 20.2, 27.4, with the same
    predicated 10.5, 13.6, 23.1; a step of a WHILE loop of two running sums, with 1, 2, 4, 8, 16 of
    them in an iteration, 5.4, 3.6, 2.8, 2.5, 2.3; an update 0.4 on the CPU; a billion operations of
    a product of matrices 19 to 26 of float32, 16 to 19 of float64, 1 to 7 of float16; a million
    elements read anywhere 9.5 in arrays of 1 to 16 MB, 27 of 64 to 256 MB, of 4 bytes or 32.

    Args:
        kernel: a further kernel in a chain, with little to do.
        kernel_in_branch: the same in the branch of a node.
        check: what reading its flags adds to a kernel.
        branch: an IF, IF-ELSE or SWITCH node, besides what it runs. Entering a WHILE node is taken
            to cost as much.
        fork: the start of predicated branches beside each other.
        beside: a kernel that is skipped beside one that runs.
        trip: one more run of the body of a WHILE node, besides what it runs.
        update: writing a new address into a kernel node, when a call brings another array.
        updates_libraries: whether a library's node can be given other addresses at all.
        block: a block of a kernel that is skipped.
        megabyte: reading or writing one, from 4.2 TB/s.
        gigaflop: a billion operations of a product.
        again: what an op may take, in units of `Elementwise.cost`, to be done again for each use of
            its result, rather than once and stored.
        elsewhere: bytes that could be read in order while one element, or a run of some, is read
            anywhere in an array: in arrays of up to so many bytes, so many.
        calls: where each op is calls on arrays, the bytes that one could go through while those of
            a gather or a roll do a few elements, for each array that it reads; else 0.
    """

    kernel: float
    kernel_in_branch: float
    check: float
    branch: float
    fork: float
    beside: float
    trip: float
    update: float
    updates_libraries: bool
    block: float
    megabyte: float
    gigaflop: float
    again: float
    elsewhere: tuple[tuple[float, int], ...]
    calls: int

    def reading(self, array: ArrayType, points: int, run: int) -> float:
        """Bytes that could be read in order while elements are read in runs out of order."""
        least = next(cost for most, cost in self.elsewhere if array.nbytes <= most)
        return points * max(array.dtype.itemsize, least / max(run, 1))


CUDA = Costs(
    kernel=0.7,
    kernel_in_branch=0.9,
    check=0.08,
    branch=7.7,
    fork=0.24,
    beside=0.31,
    trip=3.5,
    update=0.4,
    updates_libraries=False,
    block=0.0006,
    megabyte=0.24,
    gigaflop=20.0,
    again=1,
    elsewhere=((128 << 10, 0), (24 << 20, 40), (inf, 112)),
    calls=0,
)

HOST = Costs(
    kernel=1.0,
    kernel_in_branch=1.0,
    check=0.1,
    branch=0.0,
    fork=0.0,
    beside=0.1,
    trip=0.0,
    update=0.0,
    updates_libraries=True,
    block=0.0,
    megabyte=100.0,
    gigaflop=1e4,
    again=0,
    elsewhere=((inf, 0),),
    calls=24 << 10,
)
"""Where Python decides about branches and loops, their nodes are free: only that matters here.

Each op is a call on arrays, so that it is done once."""

POINTS_PER_BLOCK = 512


def work(costs: Costs, nodes: Iterable[Node]) -> float:
    """What nodes do for some time, besides being nodes: moving memory, and multiplying."""
    total = 0.0
    for node in nodes:
        weight = node.weight
        total += costs.megabyte * weight.nbytes / 1e6 + costs.gigaflop * weight.operations / 1e9
    return total


def skipped(costs: Costs, nodes: Iterable[Node]) -> float:
    """What nodes do although they are not to run, besides being nodes.

    Each block of a kernel reads its flags; a product is made all the same.
    """
    total = 0.0
    for node in nodes:
        if node.if_skipped == "idle":
            total += costs.block * node.weight.points / POINTS_PER_BLOCK
        else:
            total += work(costs, [node])
    return total


def bound(nodes: Iterable[Node]) -> int:
    """How many nodes hold addresses that differ from call to call."""
    return sum([not _OF_CALLS.isdisjoint(map(_space, node.accessed_buffers)) for node in nodes])


_OF_CALLS = frozenset({"input", "output"})
_space = attrgetter("space")
