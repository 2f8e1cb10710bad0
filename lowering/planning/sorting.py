"""Sorting and selection: a node for the rows of an array in memory."""

from __future__ import annotations

from math import prod

from lowering.draft.draft_nodes import FinishedNode
from lowering.plan.nests.buffer import Buffer
from lowering.plan.selection import SelectionNode, SelectionShape
from lowering.plan.sort import LONGEST_ROW, SortNode, SortShape
from lowering.planning.library_operands import contiguous, in_memory
from lowering.planning.region_builder import RegionBuilder
from tracegraph.ir.program import Eqn
from tracegraph.ir.types import ArrayType


def sort(builder: RegionBuilder, eqn: Eqn) -> None:
    """Emit the node, unless there are no elements.

    Raises:
        ValueError: a row has more elements than positions of 32 bits.
    """
    (keys,) = eqn.operands
    target = builder.result(eqn)
    if not keys.type.size:
        return
    _check_length(eqn)
    types = SortShape.of(keys.type).scratch(eqn.op.name == "argsort")
    array = in_memory(builder, keys, contiguous)
    scratch = _scratch(builder, types)
    node = SortNode(eqn.op, array, target, scratch, builder.sources, builder.within)
    builder.add(FinishedNode(node))


def select(builder: RegionBuilder, eqn: Eqn) -> None:
    """Emit the node, unless nothing is selected; raises as `sort` does."""
    (keys,) = eqn.operands
    target = builder.result(eqn)
    if not target.type.size:
        return
    _check_length(eqn)
    *batch, length = keys.type.shape
    shape = SelectionShape(keys.type.dtype, prod(batch), length, target.type.shape[-1])
    array = in_memory(builder, keys, contiguous)
    places = eqn.attrs.get("places", ())
    scratch = () if places else _scratch(builder, shape.scratch)
    where = builder.sources, builder.within
    node = SelectionNode(eqn.op, array, target, scratch, places, *where)
    builder.add(FinishedNode(node))


def _check_length(eqn: Eqn) -> None:
    (keys,) = eqn.operands
    if keys.type.shape[-1] > LONGEST_ROW:
        raise ValueError(
            f"{eqn.op.name} takes rows of at most {LONGEST_ROW:,} elements, got {keys.type}"
        )


def _scratch(builder: RegionBuilder, types: tuple[ArrayType, ...]) -> tuple[Buffer, ...]:
    """Scratch buffers, where the device needs any."""
    return tuple(map(builder.scratch, types)) if builder.context.target.sort_scratch else ()
