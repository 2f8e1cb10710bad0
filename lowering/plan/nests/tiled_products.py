"""Products: reductions that sum products of two factors, each of which has outputs of its own.

    out[b…, m…, n…] = sum over k… of left[b…, m…, k…] * right[b…, n…, k…]

Factors are any expressions: windows of an array, padded ones, results of elementwise ops. Large
products are computed by tiles, whose factors are read once for many outputs.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from lowering.plan.nests.analysis import nest_signals
from lowering.plan.nests.kernel import Nest, ReduceNest, RowNest
from tracegraph.ir.combiners import ADD
from tracegraph.ir.record import record
from tracegraph.ir.scalar import Axis, Expr
from tracegraph.ir.scalar_values import Apply
from tracegraph.ir.subexpressions import subexpressions
from tracegraph.ops.arithmetic import multiply

TILED_DTYPES = frozenset(map(np.dtype, (np.float32, np.float64)))

multiply_tf32 = replace(
    multiply,
    name="multiply_tf32",
    doc="x * y, of factors that may be rounded to 11 bits before.",
)
"""A product in the precision "tf32". It exists while a program is lowered, where tiles may be
multiplied by tensor cores."""

PRODUCTS = frozenset({multiply, multiply_tf32})

MIN_TILED = 1 << 21
"""Products from which tiles pay: below, a reduction reads its factors from a cache in less than a
kernel takes to start."""

MIN_SIDE = 8
"""Outputs along each factor, at least: fewer do not reuse what a tile reads."""

TILE_SIDE = 32
"""Outputs of a tile, at least, for which an element of a factor is computed once."""

MIN_SUMMED = 9
"""Products of each sum, at least: fewer take no longer than to store the sum."""

MAX_LONG_BYTES = 128
"""Bytes of the elements of a factor in a sum of products that is written out where a thread reads
them once for many sums: 32 registers."""

Axes = tuple[tuple[int, int], ...]
"""Numbers and extents of axes."""


@record
class TiledProduct:
    """The factors of a product, and the axes of outputs: those of both factors or none (`batch`),
    of the left one (`rows`), of the right one (`columns`); and those that are summed over. The
    factors may be `rounded` to tf32.
    """

    left: Expr
    right: Expr
    batch: Axes
    rows: Axes
    columns: Axes
    summed: Axes
    rounded: bool


def extent(axes: Axes) -> int:
    """The number of indices along all of some axes."""
    return prod([n for _, n in axes])


def tiled_product(nest: Nest) -> TiledProduct | None:
    """The product that a nest is, if it is one that tiles compute."""
    if isinstance(nest, ReduceNest):
        accumulators = nest.accumulators
    elif isinstance(nest, RowNest) and len(nest.passes) == 1 and not nest.passes[0].stores:
        accumulators = nest.passes[0].accumulators
    else:
        return None
    space, loop = nest.space, nest.loop
    if len(accumulators) != 1 or prod(space) * prod(loop) < MIN_TILED or prod(loop) < MIN_SUMMED:
        return None
    (accumulator,) = accumulators
    value = accumulator.value
    if accumulator.combiner is not ADD or accumulator.arg or value.dtype not in TILED_DTYPES:
        return None
    if not isinstance(value, Apply) or value.op not in PRODUCTS or nest_signals(nest):
        return None
    left, right = value.args
    of_left, of_right = _axes(left), _axes(right)
    outputs = [(axis, n) for axis, n in enumerate(space) if n > 1]
    if outputs and outputs[-1][0] in of_left - of_right:  # neighbouring outputs are columns
        left, right, of_left, of_right = right, left, of_right, of_left
    rows = tuple([each for each in outputs if each[0] in of_left - of_right])
    columns = tuple([each for each in outputs if each[0] in of_right - of_left])
    if min(extent(rows), extent(columns)) < MIN_SIDE:
        return None
    batch = tuple([each for each in outputs if each not in (*rows, *columns)])
    summed = tuple([(axis, n) for axis, n in enumerate(loop, len(space)) if n > 1])
    return TiledProduct(left, right, batch, rows, columns, summed, value.op is multiply_tf32)


def _axes(expr: Expr) -> set[int]:
    return {part.number for part in subexpressions((expr,)) if type(part) is Axis}
