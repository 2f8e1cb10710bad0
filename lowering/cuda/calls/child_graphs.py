"""Child graphs: what keeps a graph from becoming a part of one that other code captures."""

from __future__ import annotations

from lowering.cuda.compilation.compiled_plan import CompiledPlan
from lowering.plan.conditional_nodes import ConditionalNode, WhileNode
from lowering.plan.nodes import launched
from tracegraph.user_source import lines_of

FAILED_CAPTURE = (
    "the capture has failed before, or it is one of another stream, with which the legacy default "
    "stream is ordered; end that capture first"
)


def child_obstacle(compiled: CompiledPlan) -> str | None:
    """Why the graph of a Plan cannot be a child graph; None if it can."""
    plan = compiled.plan
    for node in launched(plan.graph):
        if isinstance(node, ConditionalNode):
            schedule = "one_kernel" if isinstance(node, WhileNode) else "predicated"
            what = "a loop" if isinstance(node, WhileNode) else "a branch"
            return (
                f"{what} at {lines_of(node.sources) or 'an unknown line'} is a conditional node "
                f'({node.kind}), which CUDA allows in no child graph; schedule="{schedule}" makes '
                "it a part of kernels, where that is possible"
            )
    if plan.allocated_bytes:
        return (
            "each launch allocates its scratch, which CUDA allows in no child graph; jit it "
            'without scratch="per_launch"'
        )
    return None
