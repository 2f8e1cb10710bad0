"""Unrolling of a short axis along which a value is selected: stacks and concatenations.

An element of `stack([a, b, c, …])` is selected by its position along the new axis. A map over all
positions computes the index, the guard and the selection of every source for each element:

    map [9, n, m]: y[i, j, k] = i < 1 ? a[j, k] : i < 2 ? b[j, k] : …

Written out along the axis, each point computes an element of every source, without selections:

    map [n, m]: y[0, j, k] = a[j, k]; y[1, j, k] = b[j, k]; …

There are fewer threads, and none does more than before, but for the stores. The map may then be
fused with what computed the sources, or be made in place, and what several positions read is loaded
once. Threads that are neighbours still access neighbours, since the axis is not the innermost one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from lowering.draft.draft_nodes import DraftKernel, DraftNode
from lowering.fusion.pointwise import MAX_EXPRESSIONS
from lowering.fusion.short_folds import written_out
from lowering.plan.nests.analysis import nest_expressions, nest_size
from lowering.plan.nests.kernel import MapNest, Nest, ReduceNest, RowNest, Store
from lowering.plan.nests.rewriting import map_stores
from lowering.plan.target.hardware import WARP
from tracegraph.ir.record import replace
from tracegraph.ir.scalar import Axis, Compare, Const, Expr, Select, const
from tracegraph.ir.subexpressions import substitution

LEAST_SELECTIONS = 3
"""Selections by the position along an axis from which it is unrolled: those of four sources."""


def unroll_axes(nodes: Sequence[DraftNode], most_positions: int) -> list[DraftNode] | None:
    """The nodes with axes of maps unrolled that have few positions; None if there are none."""
    found = False
    result: list[DraftNode] = []
    for node in nodes:
        if isinstance(node, DraftKernel):
            unrolled = [_unrolled(nest, most_positions) for nest in node.nests]
            if any(unrolled):
                found = True
                nests = [new or old for new, old in zip(unrolled, node.nests, strict=True)]
                result.append(DraftKernel(nests, node.sources, node.within))
                continue
        result.append(node)
    return result if found else None


def _unrolled(nest: Nest, most_positions: int) -> MapNest | None:
    """The map written out along its axis of selections, if it has one of few positions.

    Arrays of a common length that are joined end to end have a position each: the axis is split
    (strip mining), and the part that selects is written out.
    """
    if isinstance(nest, ReduceNest | RowNest):
        return _with_fold_written_out(nest, most_positions)
    if type(nest) is not MapNest or nest.signals:
        return None
    found = _selecting_axis(nest)
    if found is None:
        return None
    axis, length = found
    others = nest.space[axis.number + 1 :]
    if not 1 < axis.extent // length <= most_positions or length * prod(others) < WARP:
        return None
    inside: Expr = const(0)
    moved: dict[Expr, Expr] = {}
    if length > 1:
        space = (*nest.space[: axis.number], length, *others)
        inside = Axis.make(axis.number, length)
    else:
        space = (*nest.space[: axis.number], *others)
        for number, extent in enumerate(others, axis.number + 1):
            moved[Axis.make(number, extent)] = Axis.make(number - 1, extent)
    stores: list[Store] = []
    for position in range(axis.extent // length):
        of = substitution({**moved, axis: inside + position * length})
        stores += map_stores(nest.stores, of)
    unrolled = MapNest(space, tuple(stores), (), nest.predicates)
    return unrolled if nest_size(unrolled) <= MAX_EXPRESSIONS else None


def _with_fold_written_out(nest: ReduceNest | RowNest, most_positions: int) -> MapNest | None:
    """A fold over the axis of selections as a map, if it has few positions."""
    found = _selecting_axis(nest)
    stores_in_steps = isinstance(nest, RowNest) and any(one.stores for one in nest.passes)
    if found is None or nest.signals or stores_in_steps:
        return None
    axis, length = found
    if (axis.number, nest.loop, length) != (len(nest.space), (axis.extent,), 1):
        return None
    stores: list[Store] = []
    for store in nest.stores:
        value = written_out(nest, store, most_positions)
        if value is None:
            return None
        stores.append(replace(store, value=value))
    unrolled = MapNest(nest.space, tuple(stores), (), nest.predicates)
    return unrolled if nest_size(unrolled) <= MAX_EXPRESSIONS else None


def _selecting_axis(nest: Nest) -> tuple[Axis, int] | None:
    """The axis by whose position most values are selected, if enough are, and the greatest length
    of equal parts of the axis without a selection inside.
    """
    limits: dict[Axis, list[int]] = {}
    for expr in nest_expressions(nest):
        if type(expr) is Select and type(expr.predicate) is Compare:
            left, right = expr.predicate.left, expr.predicate.right
            if type(left) is Axis and type(right) is Const:
                limits.setdefault(left, []).append(int(right.value.real))
    if not limits:
        return None
    axis, selections = max(limits.items(), key=lambda item: len(item[1]))
    if len(selections) < LEAST_SELECTIONS:
        return None
    return axis, gcd(axis.extent, *selections)
