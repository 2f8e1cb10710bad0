"""A loop in one kernel: its steps, and the loops and branches inside, run without a launch each.

The threads of the kernel synchronise between stages that depend on each other. What sets the
condition before the loop stores a flag, which the kernel reads first.
"""

from __future__ import annotations

from lowering.draft.stage import Block, BranchStage, KernelStage, LoopStage, NodeStage, walk
from lowering.plan.nests.kernel import CallNest
from tracegraph.ir.record import replace

SCHEDULE = "one_kernel"


def obstacle(body: Block) -> str | None:
    """Why a loop cannot be one kernel; None if it can."""
    for stage in walk(body):
        if isinstance(stage, NodeStage) and not stage.node.may_be_stage:
            return f"{stage.node.noun} inside"
        if isinstance(stage, KernelStage) and any(isinstance(n, CallNest) for n in stage.nests):
            return "a callback inside, which the host takes between kernels"
    return None


def absorb(body: Block) -> None:
    """Let the loops and branches of a body run inside of the kernel that it becomes."""
    for stage in walk(body):
        if isinstance(stage, LoopStage | BranchStage):
            stage.construct = replace(
                stage.construct, schedule=SCHEDULE, why="inside of a kernel", copies=1
            )
        if isinstance(stage, LoopStage):
            stage.scope = None
