"""The cost model: estimates of stages, in microseconds, from the costs of a device."""

from __future__ import annotations

from collections.abc import Iterable, Set

from lowering.draft.stage import KernelStage, NodeStage, stage_reads, stage_writes
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Nest, ReduceNest, RowNest, ScanNest
from lowering.plan.nests.weight import Weight, weight_of
from lowering.plan.target.target import Costs

Leaf = KernelStage | NodeStage
"""A stage without bodies."""


POINTS_PER_BLOCK = 512


def work(costs: Costs, stages: Iterable[Leaf]) -> float:
    """The time of stages for what they do, besides a node each: memory traffic and products."""
    total = 0.0
    for stage in stages:
        weight = _weight(stage)
        total += costs.megabyte * weight.nbytes / 1e6 + costs.gigaflop * weight.operations / 1e9
        if isinstance(stage, KernelStage):
            total += costs.fold * max(map(folds, stage.nests), default=0)
    return total


def folds(nest: Nest) -> int:
    """How many times the threads of a nest combine what they have."""
    if isinstance(nest, RowNest):
        return sum(bool(each.accumulators) for each in nest.passes)
    return int(isinstance(nest, (ReduceNest, ScanNest)))


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
    return sum([any(_is_bound(b, moving) for b in accessed(stage)) for stage in stages])


def _is_bound(buffer: Buffer, moving: Set[Buffer]) -> bool:
    return buffer.space in ("input", "output") or buffer in moving


def accessed(stage: Leaf) -> frozenset[Buffer]:
    """The buffers that a stage reads or writes."""
    return stage_reads(stage) | stage_writes(stage)


def _weight(stage: Leaf) -> Weight:
    return weight_of(stage.nests) if isinstance(stage, KernelStage) else stage.node.weight
