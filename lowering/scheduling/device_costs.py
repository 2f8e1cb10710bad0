"""Costs: what nodes of a graph take, in microseconds, and estimates of kernels made from them."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass

from lowering.draft.stage import KernelStage, NodeStage, stage_reads, stage_writes
from lowering.plan.buffer import Buffer
from lowering.plan.weight import Weight, weight_of
from tracegraph.ir.types import ArrayType

Leaf = KernelStage | NodeStage
"""A stage without bodies."""


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


def work(costs: Costs, stages: Iterable[Leaf]) -> float:
    """The time of stages for what they do, besides a node each: memory traffic and products."""
    total = 0.0
    for stage in stages:
        weight = _weight(stage)
        total += costs.megabyte * weight.nbytes / 1e6 + costs.gigaflop * weight.operations / 1e9
    return total


def skipped(costs: Costs, stages: Iterable[Leaf]) -> float:
    """The time of stages, besides a node each, that are launched but not to run.

    Each block of a kernel reads its flags; a library call does all its work.
    """
    total = 0.0
    for stage in stages:
        if isinstance(stage, KernelStage):
            total += costs.block * _weight(stage).points / POINTS_PER_BLOCK
        else:
            total += work(costs, [stage])
    return total


def bound(stages: Iterable[Leaf], moving: Set[Buffer]) -> int:
    """How many stages hold addresses that differ from call to call: those of arguments, of results
    and of `moving` buffers.
    """
    return sum([any(_is_bound(b, moving) for b in _accessed(stage)) for stage in stages])


def _is_bound(buffer: Buffer, moving: Set[Buffer]) -> bool:
    return buffer.space in ("input", "output") or buffer in moving


def _accessed(stage: Leaf) -> frozenset[Buffer]:
    return stage_reads(stage) | stage_writes(stage)


def _weight(stage: Leaf) -> Weight:
    return weight_of(stage.nests) if isinstance(stage, KernelStage) else stage.node.weight
