"""Schedules of branches: a node that decides, or predicated kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import add
from statistics import fmean

from lowering.draft.stage import BranchStage, KernelStage, LoopStage, NodeStage, Stage
from lowering.plan.construct import Construct, Inlined, Part
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Predicate, SetCondition
from lowering.plan.target.target import Costs
from lowering.scheduling.cost_model import Leaf, skipped, work
from lowering.scheduling.predication import flag_dtype, predicated_branch
from lowering.scheduling.records import Estimate, Schedule
from tracegraph.ir.types import ArrayType, scalar_type


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch in its block.

    `signal` sets its condition. `new_flag` makes the buffer that the condition is stored to, in
    place of the signal.
    """

    stage: BranchStage
    signal: SetCondition
    costs: Costs
    new_flag: Callable[[ArrayType], Buffer]

    @property
    def no_gain(self) -> str | None:
        """Why it stays a node where that is fastest."""
        return "no gain without a node" if self.costs.branch else None

    def gain(self, time: float) -> str:
        """Why it has another schedule, which saves some µs."""
        return f"saves about {time:.1f} µs"


# -- a node


def _no_obstacle(branch: Branch, _: int | None) -> None:
    return None


def _time_of_node(branch: Branch, _: int | None) -> Estimate:
    costs = branch.costs
    times = [
        costs.branch + costs.kernel_in_branch * len(taken) + work(costs, taken)
        for taken in _leaves(branch)
    ]
    inside = [
        sum(stage.time for stage in block.stages if isinstance(stage, LoopStage | BranchStage))
        for block in branch.stage.branches
    ]
    return Estimate(fmean(times) + fmean(inside))


def _as_node(branch: Branch, _: Estimate, construct: Construct) -> list[Stage]:
    branch.stage.construct = construct
    return [branch.stage]


# -- predicated kernels


def _predication_obstacle(branch: Branch, _: int | None) -> str | None:
    inner = [stage for block in branch.stage.branches for stage in block.stages]
    if any(isinstance(stage, LoopStage) for stage in inner):
        return "a loop inside"
    if any(isinstance(stage, BranchStage) for stage in inner):
        return "a branch inside stays a node"
    for stage in inner:
        if isinstance(stage, NodeStage) and stage.node.if_skipped != "idle":
            return f"{stage.node.noun} inside"
    return None


def _time_of_predicated(branch: Branch, _: int | None) -> Estimate:
    branches = _leaves(branch)
    if not any(branches):
        return Estimate(0.0)
    return Estimate(fmean(list(_times_by_taken(branch.costs, branches))))


def _times_by_taken(costs: Costs, branches: Sequence[Sequence[Leaf]]) -> Iterator[float]:
    """All branches beside each other, for each that may be the one that runs."""
    kernel = costs.kernel + costs.check
    own = [kernel * len(taken) + work(costs, taken) for taken in branches]
    lengths = [kernel * len(branch) for branch in branches]
    longest = _of_others(lengths, max, 0.0)
    beside = _of_others(
        [costs.skipped_sibling * len(branch) + skipped(costs, branch) for branch in branches],
        add,
        0.0,
    )
    for taken, longest_other, others in zip(own, longest, beside, strict=True):
        yield costs.fork + max(taken, longest_other) + others


def _of_others(
    values: Sequence[float], combine: Callable[[float, float], float], nothing: float
) -> Iterator[float]:
    """For each value, all the others combined: those before it with those after it."""
    before = accumulate(values[:-1], combine, initial=nothing)
    after = list(accumulate(values[:0:-1], combine, initial=nothing))
    return map(combine, before, reversed(after))


def _as_predicated(branch: Branch, _: Estimate, construct: Construct) -> list[Stage]:
    """The kernels of all branches, the longest branch first.

    They exclude each other, so that any order is right. Kernels at the end of shorter branches can
    then join those at the end of the longest one.
    """
    stage = branch.stage
    if not any(block.stages for block in stage.branches):
        return []
    flag = branch.new_flag(scalar_type(flag_dtype(branch.signal, stage.boolean)))
    inlined = Inlined(construct, len(stage.branches), False, stage.sources)
    values: Sequence[bool | int] = (True, False) if stage.boolean else range(len(stage.branches))
    around = stage.within[0] if stage.within else ()
    parts = [
        predicated_branch(block, Predicate(flag, value), (*around, Part(inlined, number)))
        for number, (block, value) in enumerate(zip(stage.branches, values, strict=True))
    ]
    return [each for part in sorted(parts, key=len, reverse=True) for each in part]


def _leaves(branch: Branch) -> list[list[Leaf]]:
    return [
        [stage for stage in block.stages if isinstance(stage, KernelStage | NodeStage)]
        for block in branch.stage.branches
    ]


BRANCH_SCHEDULES: tuple[Schedule[Branch], ...] = (
    Schedule("conditional", _no_obstacle, _time_of_node, _as_node),
    Schedule(
        "predicated",
        _predication_obstacle,
        _time_of_predicated,
        _as_predicated,
        "with the kernels of all branches launched, and those not taken returning at once",
    ),
)
