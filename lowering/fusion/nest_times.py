"""Times of nests: an estimate by the bytes that a nest moves and the operations that it computes.

It orders two forms of the same work, of which one moves more and the other computes more.
"""

from __future__ import annotations

from math import prod

from lowering.plan.nests.access_patterns import loop_is_contiguous
from lowering.plan.nests.analysis import as_rows, nest_expressions
from lowering.plan.nests.kernel import MapNest, Nest, ReduceNest, RowNest
from lowering.plan.nests.strides import offset_in
from lowering.plan.nests.tiled_products import TILE_SIDE, TiledProduct, extent, tiled_product
from lowering.plan.nests.weight import traffic
from lowering.plan.target.hardware import WARP
from lowering.plan.target.target import Costs
from tracegraph.ir.op import Elementwise
from tracegraph.ir.scalar import Axis, Expr, affine
from tracegraph.ir.scalar_values import Apply, Load

LINE_BYTES = 128
"""Bytes of a line of the near cache, of which one is read at a time."""


def nest_time(nest: Nest, costs: Costs, tiles: bool = False) -> float:
    """The time of a nest in µs, without that of the launch.

    What it moves and what it computes are added: a multiprocessor has few blocks of a nest that
    folds, all of which load, then compute. Of 2000² float64, a pass of a log-sum-exp that loads for
    12 µs and computes exponentials and quotients for 10 takes 22 (H100). With `tiles`, large
    products are computed by tiles, which compute an element of a factor once for many outputs.
    """
    nbytes = sum([n for buffer, n in traffic(nest) if buffer.type.nbytes > costs.cached])
    moved = costs.megabyte * 1e-6 * nbytes
    product = tiled_product(nest) if tiles else None
    number = operations(nest, costs.columns, costs.near_line, product)
    computed = costs.gigaoperation * 1e-9 * number
    threads = min(1.0, _threads(nest) / costs.full_threads)
    return moved + computed / threads


def operations(
    nest: Nest, columns: int = 1, near_line: float = 1, product: TiledProduct | None = None
) -> float:
    """The operations of a nest at all of its points, in units of `Elementwise.cost`.

    What depends on no axis of a loop is computed once for each row, and what does not depend on the
    last axis of the rows once for up to `columns` of them. Each line of a cache that the loads of
    neighbouring points touch counts as `near_line`. What the tiles of a `product` compute for
    one of their sides is computed once for the other one.
    """
    loop = nest.loop if isinstance(nest, (ReduceNest, RowNest)) else ()
    rank = len(nest.space)
    rows, steps = prod(nest.space), prod(loop)
    last = nest.space[-1] if nest.space else 1
    short = 1 << rank - 1 if loop and 1 < last <= columns else 0
    neighbours = _axis_of_neighbours(nest, bool(short))
    sides = () if product is None else (product.rows, product.columns)
    axes: dict[Expr, int] = {}
    total = 0.0
    for expr in nest_expressions(nest):
        mask = 1 << expr.number if type(expr) is Axis else 0
        for child in expr.children:
            mask |= axes[child]
        axes[expr] = mask
        cost = near_line * _lines(expr, neighbours) if type(expr) is Load else _cost(expr)
        if cost:
            points: float = rows * (steps if mask >> rank else 1)
            for side in sides:
                if not any(mask >> axis & 1 for axis, _ in side):
                    points /= min(TILE_SIDE, extent(side))
            total += cost * (points / last if short and not mask & short else points)
    return total


def _axis_of_neighbours(nest: Nest, short: bool) -> int:
    """The axis along which neighbouring threads, or lanes, compute; -1 if there is one point."""
    loop = nest.loop if isinstance(nest, (ReduceNest, RowNest)) else ()
    rank = len(nest.space)
    outputs = [axis for axis, extent in enumerate(nest.space) if extent > 1]
    steps = [axis for axis, extent in enumerate(loop, rank) if extent > 1]
    if not outputs:
        return steps[-1] if steps else -1
    if not isinstance(nest, (ReduceNest, RowNest)) or prod(loop) < WARP:
        return outputs[-1]
    return steps[-1] if short or loop_is_contiguous(as_rows(nest)) else outputs[-1]


def _lines(load: Load, axis: int) -> float:
    """How many lines of a cache the loads of a warp touch."""
    size = load.dtype.itemsize
    found = affine(offset_in(load.buffer.type.shape, load.indices))
    if found is None:
        return max(1, size // 4)  # in some order: as if in sequence
    stride = abs(found[0].get(axis, 0)) * size
    return min(WARP, max(1, WARP * stride / LINE_BYTES))


def _cost(expr: Expr) -> float:
    if type(expr) is not Apply:
        return 0
    form = expr.op.form
    assert isinstance(form, Elementwise)
    return form.cost * max(1, expr.dtype.itemsize // 4)


def _threads(nest: Nest) -> int:
    """The points that can be computed at a time."""
    if isinstance(nest, (MapNest, ReduceNest, RowNest)):
        loop = () if isinstance(nest, MapNest) else nest.loop
        return max(1, prod(nest.space) * prod(loop))
    return max(1, prod(nest.space))
