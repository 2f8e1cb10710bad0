"""A loop in one kernel: its steps, and the loops and branches inside, run without a launch each.

The threads of the kernel synchronise between nodes that depend on each other. What sets the
condition before the loop stores a flag, which the kernel reads first.
"""

from __future__ import annotations

from lowering.draft.draft_nodes import (
    Block,
    DraftBranch,
    DraftKernel,
    DraftLoop,
    FinishedNode,
    walk,
)
from lowering.plan.calls.collectives import PHASE_BYTES
from lowering.plan.custom_kernel import CustomKernelNode
from lowering.plan.lockstep import collective_of
from lowering.plan.nests.kernel import CallNest
from lowering.plan.nests.tiled_products import tiled_product
from lowering.plan.target.hardware import WARP
from tracegraph.ir.record import replace

SCHEDULE = "one_kernel"


def obstacle(body: Block, *, reaches_devices: bool = True) -> str | None:
    """Why a loop cannot be one kernel; None if it can.

    Kernels exchange arrays with other devices if they can store into their memory.
    """
    for node in walk(body):
        call = collective_of(node.plan_node) if isinstance(node, FinishedNode) else None
        if call is not None and not reaches_devices:
            return "a collective inside, of devices that reach no memory of one another"
        if call is not None and not call.may_be_phase:
            return f"{call.noun} inside of more than {PHASE_BYTES >> 20} MB"
        if isinstance(node, FinishedNode) and not node.plan_node.may_be_phase:
            return f"{node.plan_node.noun} inside"
        if isinstance(node, DraftKernel) and any(isinstance(n, CallNest) for n in node.nests):
            return "a callback inside, which the host takes between kernels"
        if isinstance(node, DraftKernel) and any(map(tiled_product, node.nests)):
            return "a large product inside, which a kernel of its own computes by tiles"
    return None


def least_threads(body: Block) -> int:
    """The threads of a block that the body needs."""
    finished = [node.plan_node for node in walk(body) if isinstance(node, FinishedNode)]
    return WARP if any(isinstance(node, CustomKernelNode) for node in finished) else 1


def absorb(body: Block) -> None:
    """Let the loops and branches of a body run inside of the kernel that it becomes."""
    for node in walk(body):
        if isinstance(node, DraftLoop | DraftBranch):
            node.construct = replace(
                node.construct, schedule=SCHEDULE, why="inside of a kernel", copies=1
            )
        if isinstance(node, DraftLoop):
            node.scope = None
