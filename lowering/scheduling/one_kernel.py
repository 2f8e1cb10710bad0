"""A loop in one kernel: its steps, and the loops and branches inside, run without a launch each.

The threads of the kernel synchronise between stages that depend on each other. What sets the
condition before the loop stores a flag, which the kernel reads first.
"""

from __future__ import annotations

from math import prod

from lowering.draft.stage import Block, BranchStage, KernelStage, LoopStage, NodeStage, Stage, walk
from lowering.plan.hardware import MAX_BLOCK_THREADS, WARP
from lowering.plan.kernel import Nest, PrintNest, ReduceNest, RowNest
from lowering.plan.persistent_kernel import Scope
from lowering.plan.rounding import power_of_two
from tracegraph.ir.record import replace

SCHEDULE = "one_kernel"


def obstacle(body: Block) -> str | None:
    """Why a loop cannot be one kernel; None if it can."""
    for stage in walk(body):
        if isinstance(stage, NodeStage) and stage.node.kind != "copy":
            return f"{stage.node.noun} inside"
    return None


def scope_of(body: Block) -> Scope:
    """The threads that run a loop."""
    widest = max((_width(nest) for nest in _nests(body)), default=1)
    if widest <= 8:
        return Scope(1, 1)
    return Scope(1, min(max(power_of_two(widest), WARP), MAX_BLOCK_THREADS))


def absorb(body: Block) -> None:
    """Let the loops and branches of a body run inside of the kernel that it becomes."""
    for stage in walk(body):
        if isinstance(stage, LoopStage | BranchStage):
            stage.construct = replace(
                stage.construct, schedule=SCHEDULE, why="inside of a kernel", copies=1
            )
        if isinstance(stage, LoopStage):
            stage.scope = None


def _nests(body: Block) -> list[Nest]:
    kernels = [stage for stage in walk(body) if isinstance(stage, KernelStage)]
    return [nest for stage in kernels for nest in stage.nests]


def _width(nest: Nest) -> int:
    """The threads that a nest has work for."""
    if isinstance(nest, PrintNest):
        return max((prod(a.shape) for a in nest.arguments), default=1)
    loop = nest.loop if isinstance(nest, (ReduceNest, RowNest)) else ()
    return prod(nest.space) * prod(loop)
