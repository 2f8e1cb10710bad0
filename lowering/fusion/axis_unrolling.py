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

from collections import Counter
from collections.abc import Sequence
from math import prod

from lowering.draft.stage import KernelStage, Stage
from lowering.fusion.pointwise import MAX_EXPRESSIONS
from lowering.plan.hardware import WARP
from lowering.plan.kernel import MapNest, Nest, Store
from lowering.plan.nest_analysis import nest_expressions, nest_size
from lowering.plan.nest_rewriting import map_stores
from tracegraph.ir.scalar import Axis, Compare, Expr, Select, const
from tracegraph.ir.subexpressions import subexpressions, substitution

LEAST_SELECTIONS = 3
"""Selections by the position along an axis from which it is unrolled: those of four sources."""


def unroll_axes(stages: Sequence[Stage], most_positions: int) -> list[Stage] | None:
    """The stages with axes of maps unrolled that have few positions; None if there are none."""
    found = False
    result: list[Stage] = []
    for stage in stages:
        if isinstance(stage, KernelStage):
            unrolled = [_unrolled(nest, most_positions) for nest in stage.nests]
            if any(unrolled):
                found = True
                nests = [new or old for new, old in zip(unrolled, stage.nests, strict=True)]
                result.append(KernelStage(nests, stage.sources, stage.within))
                continue
        result.append(stage)
    return result if found else None


def _unrolled(nest: Nest, most_positions: int) -> MapNest | None:
    """The map written out along its axis of selections, if it has one that is short."""
    if type(nest) is not MapNest or nest.signals:
        return None
    axis = _selecting_axis(nest)
    if axis is None or not 1 < axis.extent <= most_positions:
        return None
    if prod(nest.space[axis.number + 1 :]) < WARP:
        return None
    stores: list[Store] = []
    for position in range(axis.extent):
        replacement: dict[Expr, Expr] = {axis: const(position)}
        for number in range(axis.number + 1, len(nest.space)):
            extent = nest.space[number]
            replacement[Axis.make(number, extent)] = Axis.make(number - 1, extent)
        stores += map_stores(nest.stores, substitution(replacement))
    space = nest.space[: axis.number] + nest.space[axis.number + 1 :]
    unrolled = MapNest(space, tuple(stores), (), nest.predicates)
    return unrolled if nest_size(unrolled) <= MAX_EXPRESSIONS else None


def _selecting_axis(nest: MapNest) -> Axis | None:
    """The axis by whose position most values are selected, if enough are."""
    selections: Counter[Axis] = Counter()
    for expr in nest_expressions(nest):
        if type(expr) is Select and type(expr.predicate) is Compare:
            axes = [e for e in subexpressions((expr.predicate,)) if type(e) is Axis]
            if len(axes) == 1:
                selections[axes[0]] += 1
    for axis, count in selections.most_common(1):
        if count >= LEAST_SELECTIONS:
            return axis
    return None
