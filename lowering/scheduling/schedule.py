"""Scheduling: how each loop and branch of a block runs.

A block arrives with the bodies inside it finished, so that their kernels can be counted. A loop or
branch that is faster without a node gives its stages to the block around it, before that is fused:
they fuse as if they had been written there. The results are the same, bit for bit.

The ways to run them are the records of `LOOP_SCHEDULES` and `BRANCH_SCHEDULES`.
"""

from __future__ import annotations

from collections.abc import Sequence

from lowering.allocation.in_place import plain_copy
from lowering.draft.context import Context
from lowering.draft.stage import Block, BranchStage, KernelStage, LoopStage, Stage
from lowering.plan.construct import Construct
from lowering.plan.nests.buffer import Buffer
from lowering.plan.target.overrides import Choices, declared
from lowering.scheduling.branch_schedules import BRANCH_SCHEDULES, Branch
from lowering.scheduling.loop_schedules import LOOP_SCHEDULES, Loop
from lowering.scheduling.predication import (
    ConditionRewrites,
    rewritten_stage,
    set_conditions,
)
from lowering.scheduling.records import Asked, Estimate, S, Schedule
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
    if any(isinstance(stage, LoopStage | BranchStage) for stage in block.stages):
        _Scheduling(block, context, declared()).run()


class _Scheduling:
    """The loops and branches of one block."""

    def __init__(self, block: Block, context: Context, choices: Choices) -> None:
        self._block = block
        self._context = context
        self._choices = choices
        self._signals = set_conditions(block.stages)
        self._moving = _moving(block)
        self._flags: dict[int, Buffer] = {}
        self._dropped: set[int] = set()

    def run(self) -> None:
        stages = [new for stage in self._block.stages for new in self._scheduled(stage)]
        if self._dropped:
            rewrites = ConditionRewrites(self._flags, frozenset(self._dropped))
            rewritten = [rewritten_stage(stage, rewrites) for stage in stages]
            stages = [stage for stage in rewritten if stage is not None]
        self._block.stages = stages

    def _scheduled(self, stage: Stage) -> list[Stage]:
        if isinstance(stage, LoopStage):
            return self._loop(stage)
        return self._branch(stage) if isinstance(stage, BranchStage) else [stage]

    def _loop(self, stage: LoopStage) -> list[Stage]:
        asked = self._asked(stage.construct, self._choices.loops, self._choices.unroll)
        if asked is None:
            return [stage]
        write_out_steps(stage.body)
        target, scope = self._context.target, self._choices.scope
        loop = Loop(stage, target.costs, self._moving, self._new_flag, target.persistent, scope)
        chosen, estimate, construct = _choose(loop, LOOP_SCHEDULES, asked, stage, LEAST_GAIN)
        stage.time = estimate.time
        stages = chosen.apply(loop, estimate, construct)
        if construct.copies == 0 or stage.entry is not None:
            self._dropped.add(stage.condition)
        if stage.entry is not None:
            self._flags[stage.condition] = stage.entry
        return stages

    def _new_flag(self, type_: ArrayType) -> Buffer:
        flag = self._context.buffer("scratch", type_)
        self._block.owned.add(flag)
        return flag

    def _branch(self, stage: BranchStage) -> list[Stage]:
        asked = self._asked(stage.construct, self._choices.branches, None)
        if asked is None:
            return [stage]

        def new_flag(type_: ArrayType) -> Buffer:
            flag = self._flags[stage.condition] = self._new_flag(type_)
            return flag

        for block in stage.branches:
            write_out_steps(block)
        branch = Branch(stage, self._signals[stage.condition], self._context.costs, new_flag)
        chosen, estimate, construct = _choose(branch, BRANCH_SCHEDULES, asked, stage, 0.0)
        stage.time = estimate.time
        stages = chosen.apply(branch, estimate, construct)
        if stage not in stages:
            for block in stage.branches:
                self._block.owned |= block.owned
            self._dropped.add(stage.condition)
        return stages

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
    stage: LoopStage | BranchStage,
    least_gain: float,
) -> tuple[Schedule[S], Estimate, Construct]:
    """The schedule that is asked for, or the one that takes the least time; and what to say of it.

    The first schedule is the default, which is always possible. Another one must save `least_gain`
    of its time.
    """
    default, *others = schedules
    construct = stage.construct
    if asked.schedule is not None:
        chosen = next(each for each in schedules if each.name == asked.schedule)
        obstacle = chosen.obstacle(subject, asked.unroll)
        if obstacle is None:
            return _explained(chosen, chosen.estimate(subject, asked.unroll), construct, asked.why)
        if asked.binding:
            source = stage.sources[0] if stage.sources else None
            raise UnschedulableError(construct.name, asked.schedule, obstacle, source)
        return _explained(default, Estimate(0.0), construct, obstacle)
    known = default.estimate(subject, None)
    obstacles = [each.obstacle(subject, None) for each in others]
    possible = [s for s, obstacle in zip(others, obstacles, strict=True) if obstacle is None]
    estimates = [each.estimate(subject, None) for each in possible]
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
    for stage in block.stages:
        if isinstance(stage, KernelStage) and (pair := plain_copy(stage)) is not None:
            new, old = pair
            if new.space == "output":
                found.add(old)
    return frozenset(found)
