"""Collectives as library calls, on contiguous arrays at fixed addresses."""

from __future__ import annotations

from lowering.draft.draft_nodes import FinishedNode
from lowering.plan.calls.collectives import KINDS
from lowering.plan.calls.library_call import StridedArray
from lowering.plan.nodes import LibraryNode
from lowering.planning.library_operands import contiguous, operand
from lowering.planning.region_builder import RegionBuilder
from tracegraph.ir.program import Eqn


def collective(builder: RegionBuilder, eqn: Eqn) -> None:
    """Emit the call of a collective, unless it has no elements."""
    (x,) = eqn.operands
    source = operand(builder, x, contiguous)
    target = StridedArray.whole(builder.result(eqn))
    if not target.buffer.type.size:
        return
    call = KINDS[eqn.op.name](source, target, lines=builder.sources, **eqn.attrs)
    builder.add(FinishedNode(LibraryNode(call, builder.sources)))
