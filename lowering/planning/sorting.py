"""Sorting: a node for the rows of an array in memory."""

from __future__ import annotations

from lowering.draft.draft_nodes import FinishedNode
from lowering.plan.sort import LONGEST_ROW, SortNode, SortShape
from lowering.planning.library_operands import contiguous, in_memory
from lowering.planning.region_builder import RegionBuilder
from tracegraph.ir.program import Eqn


def sort(builder: RegionBuilder, eqn: Eqn) -> None:
    """Emit the node, unless there are no elements.

    Raises:
        ValueError: a row has more elements than positions of 32 bits.
    """
    (keys,) = eqn.operands
    target = builder.result(eqn)
    if not keys.type.size:
        return
    shape = SortShape.of(keys.type)
    if shape.length > LONGEST_ROW:
        raise ValueError(
            f"{eqn.op.name} takes rows of at most {LONGEST_ROW:,} elements, got {keys.type}"
        )
    array = in_memory(builder, keys, contiguous)
    types = shape.scratch(eqn.op.name == "argsort") if builder.context.target.sort_scratch else ()
    scratch = tuple(map(builder.scratch, types))
    node = SortNode(eqn.op, array, target, scratch, builder.sources, builder.within)
    builder.add(FinishedNode(node))
