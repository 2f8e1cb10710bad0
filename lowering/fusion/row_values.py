"""Values of rows: what a value of each element takes from the folds of its row.

In `y[i, j] = (x[i, j] - mean[i]) / deviation[i]` these are two numbers of each row. With them in
memory, an element of `y` can be computed by other kernels, which do not fold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lowering.plan.nests.analysis import nest_stores
from lowering.plan.nests.kernel import ReduceNest, RowNest, Store, is_at, space_index
from tracegraph.ir.scalar import Axis, Expr
from tracegraph.ir.scalar_values import Accumulated, Load
from tracegraph.ir.subexpressions import subexpressions


def stored_values(nest: ReduceNest | RowNest) -> dict[Expr, Expr]:
    """Loads of what a nest stores for each row, by the values."""
    point = space_index(nest.space)
    stores = nest_stores(nest)
    several = Counter([store.buffer for store in stores])
    return {
        store.value: Load.make(store.buffer, store.indices)
        for store in stores
        if store.guard is None and several[store.buffer] == 1 and is_at(point, store.indices)
    }


def row_values(nest: ReduceNest | RowNest, value: Expr) -> Sequence[Expr]:
    """The largest parts of a value that are made of folds, and of nothing that differs along the
    row.
    """
    rank = len(nest.space)
    folded: dict[Expr, bool] = {}
    differs: dict[Expr, bool] = {}
    found: dict[Expr, None] = {}
    below = subexpressions((value,))
    for expr in below:
        children = expr.children
        folded[expr] = type(expr) is Accumulated or any(map(folded.__getitem__, children))
        along = type(expr) is Axis and expr.number >= rank
        differs[expr] = along or any(map(differs.__getitem__, children))
        if differs[expr]:
            found.update({c: None for c in children if folded[c] and not differs[c]})
    if folded[value] and not differs[value]:
        return (value,)
    return tuple(found)


def storing(nest: ReduceNest | RowNest, stores: Sequence[Store]) -> ReduceNest | RowNest:
    """The nest with further stores for each row."""
    more = (*nest.stores, *stores)
    if isinstance(nest, RowNest):
        return RowNest(nest.space, nest.loop, nest.passes, more, nest.signals, nest.predicates)
    return ReduceNest(nest.space, nest.loop, nest.accumulators, more, nest.signals, nest.predicates)
