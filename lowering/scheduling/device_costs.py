"""Costs: what nodes of a graph take, in microseconds, and estimates of kernels made from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter

from lowering.plan.nodes import Node
from tracegraph.ir.types import ArrayType


@dataclass(frozen=True, slots=True)
class Costs:
    """What a device takes, in µs. Each backend's `Target` has its own.

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

    @property
    def control_is_free(self) -> bool:
        """Whether a loop or branch costs nothing as a node, so that no other schedule is faster."""
        return self.branch == self.trip == 0

    def reading(self, array: ArrayType, points: int, run: int) -> float:
        """Bytes that could be read in order while elements are read in runs out of order."""
        least = next(cost for most, cost in self.elsewhere if array.nbytes <= most)
        return points * max(array.dtype.itemsize, least / max(run, 1))


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
