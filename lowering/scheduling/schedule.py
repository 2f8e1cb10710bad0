"""Scheduling: how each loop and branch of a block runs.

A block arrives with the bodies inside it finished, so that their kernels can be counted. A loop or
branch that is faster without a node gives its nodes to the block around it, before that is fused:
they fuse as if they had been written there. The results are the same, bit for bit.

The ways to run them are the records of `LOOP_SCHEDULES` and `BRANCH_SCHEDULES`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial

from lowering.allocation.in_place import plain_copy
from lowering.draft.context import Context
from lowering.draft.draft_nodes import (
    Block,
    DraftBranch,
    DraftKernel,
    DraftLoop,
    DraftNode,
    node_reads,
)
from lowering.plan.construct import Construct
from lowering.plan.nests.buffer import Buffer
from lowering.plan.target.overrides import Choices, declared
from lowering.scheduling.branch_schedules import BRANCH_SCHEDULES, Branch
from lowering.scheduling.loop_schedules import LOOP_SCHEDULES, Loop
from lowering.scheduling.predication import (
    ConditionRewrites,
    rewritten_node,
    set_conditions,
)
from lowering.scheduling.schedule_records import Asked, Estimate, S, Schedule
from lowering.scheduling.unrolling import write_out_steps
from tracegraph.errors import UnschedulableError
from tracegraph.ir.record import replace
from tracegraph.ir.types import ArrayType

LEAST_GAIN = 0.05
"""Part of its time that a loop must gain to be unrolled: longer graphs are built more slowly."""


def schedule(block: Block, context: Context) -> None:
    """Choose a schedule for each loop and branch of a block, and apply it, in place.

    Raises:
        UnschedulableError: the user pinned one that is not possible.
        ValueError: the environment variable of `overrides` has a word that means nothing.
    """
    if any(isinstance(node, DraftLoop | DraftBranch) for node in block.nodes):
        _Scheduling(block, context, declared()).run()


class _Scheduling:
    """The loops and branches of one block."""

    def __init__(self, block: Block, context: Context, choices: Choices) -> None:
        self._block = block
        self._context = context
        self._choices = choices
        self._signals = set_conditions(block.nodes)
        self._moving = _moving(block)
        self._flags: dict[int, Buffer] = {}
        self._dropped: set[int] = set()

    def run(self) -> None:
        nodes = [new for node in self._block.nodes for new in self._scheduled(node)]
        if self._dropped:
            rewrites = ConditionRewrites(self._flags, frozenset(self._dropped))
            rewritten = [rewritten_node(node, rewrites) for node in nodes]
            nodes = [node for node in rewritten if node is not None]
        self._block.nodes = nodes

    def _scheduled(self, node: DraftNode) -> list[DraftNode]:
        if isinstance(node, DraftLoop):
            return self._loop(node)
        return self._branch(node) if isinstance(node, DraftBranch) else [node]

    def _loop(self, node: DraftLoop) -> list[DraftNode]:
        asked = self._asked(node.construct, self._choices.loops, self._choices.unroll)
        if asked is None:
            return [node]
        write_out_steps(node.body)
        target, scope = self._context.target, self._choices.scope
        loop = Loop(
            node,
            target.costs,
            self._moving,
            self._new_flag,
            target.persistent,
            scope,
            partial(self._is_read_after, node),
        )
        chosen, estimate, construct = _choose(loop, LOOP_SCHEDULES, asked, node, LEAST_GAIN)
        node.time = estimate.time
        nodes = chosen.apply(loop, estimate, construct)
        if construct.copies == 0 or node.entry is not None:
            self._dropped.add(node.condition)
        if node.entry is not None:
            self._flags[node.condition] = node.entry
        return nodes

    def _is_read_after(self, node: DraftNode, buffer: Buffer) -> bool:
        """Whether anybody may read a buffer of this block after a node of it."""
        if buffer not in self._block.owned or buffer in self._block.sinks:
            return True
        return self._last_readers.get(buffer, -1) > self._positions[node]

    @cached_property
    def _positions(self) -> dict[DraftNode, int]:
        return {node: position for position, node in enumerate(self._block.nodes)}

    @cached_property
    def _last_readers(self) -> dict[Buffer, int]:
        """The position of the last node that reads each buffer."""
        return {b: n for n, node in enumerate(self._block.nodes) for b in node_reads(node)}

    def _new_flag(self, type_: ArrayType) -> Buffer:
        flag = self._context.buffer("scratch", type_)
        self._block.owned.add(flag)
        return flag

    def _branch(self, node: DraftBranch) -> list[DraftNode]:
        asked = self._asked(node.construct, self._choices.branches, None)
        if asked is None:
            return [node]

        def new_flag(type_: ArrayType) -> Buffer:
            flag = self._flags[node.condition] = self._new_flag(type_)
            return flag

        for block in node.branches:
            write_out_steps(block)
        branch = Branch(node, self._signals[node.condition], self._context.costs, new_flag)
        chosen, estimate, construct = _choose(branch, BRANCH_SCHEDULES, asked, node, 0.0)
        node.time = estimate.time
        nodes = chosen.apply(branch, estimate, construct)
        if node not in nodes:
            for block in node.branches:
                self._block.owned |= block.owned
            self._dropped.add(node.condition)
        return nodes

    def _asked(self, construct: Construct, chosen: str | None, unroll: int | None) -> Asked | None:
        """What is pinned, or else set for all; None if neither is and nodes are free."""
        if construct.pinned is not None:
            return Asked(construct.pinned, construct.unroll, binding=True)
        if self._context.costs.control_is_free and self._choices == Choices():
            return None
        return Asked(chosen, unroll)


def _choose(
    subject: S,
    schedules: Sequence[Schedule[S]],
    asked: Asked,
    node: DraftLoop | DraftBranch,
    least_gain: float,
) -> tuple[Schedule[S], Estimate, Construct]:
    """The schedule that is asked for, or the one that takes the least time; and what to say of it.

    The first schedule is the default, which is always possible. Another one must save `least_gain`
    of its time.
    """
    default, *others = schedules
    construct = node.construct
    if asked.schedule is not None:
        chosen = next(schedule for schedule in schedules if schedule.name == asked.schedule)
        obstacle = chosen.obstacle(subject, asked.unroll)
        if obstacle is None:
            return _explained(chosen, chosen.estimate(subject, asked.unroll), construct, asked.why)
        if asked.binding:
            source = node.sources[0] if node.sources else None
            raise UnschedulableError(construct.name, asked.schedule, obstacle, source)
        return _explained(default, Estimate(0.0), construct, obstacle)
    known = default.estimate(subject, None)
    obstacles = [schedule.obstacle(subject, None) for schedule in others]
    possible = [s for s, obstacle in zip(others, obstacles, strict=True) if obstacle is None]
    estimates = [schedule.estimate(subject, None) for schedule in possible]
    best = min(range(len(possible)), key=lambda i: estimates[i].time, default=None)
    if best is None or estimates[best].time >= known.time * (1 - least_gain):
        why = subject.no_gain if possible else next(iter(obstacles), None)
        free = subject.costs.control_is_free
        return _explained(default, known, construct, None if free else why)
    why = subject.gain(known.time - estimates[best].time)
    return _explained(possible[best], estimates[best], construct, why)


def _explained(
    chosen: Schedule[S], estimate: Estimate, construct: Construct, why: str | None
) -> tuple[Schedule[S], Estimate, Construct]:
    why = construct.why if why is None else why
    new = replace(construct, schedule=chosen.name, why=why, copies=estimate.steps)
    return chosen, estimate, new


def _moving(block: Block) -> frozenset[Buffer]:
    """The buffers that become a result of the call, if they are only copied to it."""
    found = set()
    for node in block.nodes:
        if isinstance(node, DraftKernel) and (pair := plain_copy(node)) is not None:
            new, old = pair
            if new.space == "output":
                found.add(old)
    return frozenset(found)
