"""Schedules of branches: a node that decides, or predicated kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from operator import add

from lowering.draft.draft_nodes import DraftBranch, DraftKernel, DraftLoop, DraftNode, FinishedNode
from lowering.plan.construct import Construct, Inlined, Part
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Predicate, SetCondition
from lowering.plan.target.target import Costs
from lowering.scheduling.cost_model import Leaf, mean, skipped, work
from lowering.scheduling.predication import flag_dtype, predicated_branch
from lowering.scheduling.schedule_records import Estimate, Schedule
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.types import ArrayType, scalar_type


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch in its block.

    `signal` sets its condition. `new_flag` makes the buffer that the condition is stored to, in
    place of the signal.
    """

    node: DraftBranch
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
        sum(node.time for node in block.nodes if isinstance(node, DraftLoop | DraftBranch))
        for block in branch.node.branches
    ]
    return Estimate(mean(times) + mean(inside))


def _as_node(branch: Branch, _: Estimate, construct: Construct) -> list[DraftNode]:
    branch.node.construct = construct
    return [branch.node]


# -- predicated kernels


def _predication_obstacle(branch: Branch, _: int | None) -> str | None:
    inner = [node for block in branch.node.branches for node in block.nodes]
    if any(isinstance(node, DraftLoop) for node in inner):
        return "a loop inside"
    if any(isinstance(node, DraftBranch) for node in inner):
        return "a branch inside stays a node"
    for node in inner:
        if isinstance(node, FinishedNode) and node.plan_node.if_skipped != "idle":
            return f"{node.plan_node.noun} inside"
    return None


def _time_of_predicated(branch: Branch, _: int | None) -> Estimate:
    branches = _leaves(branch)
    if not any(branches):
        return Estimate(0.0)
    return Estimate(mean(list(_times_by_taken(branch.costs, branches))))


def _times_by_taken(costs: Costs, branches: Sequence[Sequence[Leaf]]) -> Iterator[float]:
    """The time of all branches side by side, for each branch that may be the one that runs."""
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


def _as_predicated(branch: Branch, _: Estimate, construct: Construct) -> list[DraftNode]:
    """The kernels of all branches, the longest branch first.

    They exclude each other, so that any order is right. Kernels at the end of shorter branches can
    then join those at the end of the longest one.
    """
    node = branch.node
    if not any(block.nodes for block in node.branches):
        return []
    flag = branch.new_flag(scalar_type(flag_dtype(branch.signal, node.boolean)))
    inlined = Inlined(construct, len(node.branches), False, node.sources)
    values: Sequence[bool | int] = (True, False) if node.boolean else range(len(node.branches))
    around = node.within[0] if node.within else ()
    parts = [
        predicated_branch(
            block, Predicate(flag, value, construct.lanes), (*around, Part(inlined, number))
        )
        for number, (block, value) in enumerate(zip(node.branches, values, strict=True))
    ]
    return [each for part in sorted(parts, key=len, reverse=True) for each in part]


def _leaves(branch: Branch) -> list[list[Leaf]]:
    return [
        [node for node in block.nodes if isinstance(node, DraftKernel | FinishedNode)]
        for block in branch.node.branches
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
