"""Contraction lowering: matrix products that are not library calls become sums of products.

    matmul x y   ──▶   sum (multiply x y) over k        one reduction nest, the product in registers

The operands broadcast as views: an element of `x` is read at (m, k) and one of `y` at (k, n), in
place, whatever their strides. What computes an operand and what uses the result can be fused with
the sum, and nothing keeps its loop or branch from being predicated or unrolled.

A library call is a launch that is not fused with anything, and may cost copies of operands. Its
kernels keep tiles of both operands in registers, and so read each element few times. A nest reads
both factors of each product from a cache. It is faster where a product has no reuse (dot products,
a matrix and a vector) or little work; see `ContractionPolicy`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from lowering.plan.calls.matrix_product import FEW_ROWS, library_takes
from lowering.plan.nests.tiled_products import (
    MIN_SIDE,
    MIN_SUMMED,
    MIN_TILED,
    TILED_DTYPES,
    multiply_tf32,
)
from lowering.plan.target.overrides import ProductForm
from lowering.plan.target.target import ContractionPolicy
from lowering.planning.expansion.folded_products import folded_products
from lowering.planning.expansion.shared_factors import shared_batch
from lowering.planning.expansion.view_axes import has_windows, is_made_of_less, joined_axes
from tracegraph.dtypes import is_half
from tracegraph.ir.program import Atom, Eqn, Program, Value, application, walk
from tracegraph.ir.record import replace
from tracegraph.ir.types import ArrayType
from tracegraph.passes.rewrite import Defs, Replacement, by_name, rewrite
from tracegraph.passes.views import compose_views
from tracegraph.user_source import Source

MOST_CHANNELS = 128
"""Channels of float32 up to which convolutions, and the like, are computed by tiles."""

SMALL_MATRIX = 32
"""Rows and columns of results in a batch up to which tiles are faster than the library."""


SHORT_SUMS = 64
"""Products in each of few rows or columns of sums up to which tiles are faster than the library."""

MEDIUM_SUMS, FEW_ELEMENTS, FEW_OF_LONGER = 256, 1 << 20, 1 << 18
"""The same if the larger factor has few elements, and fewer for longer sums."""

LONG_SUMS, FEW_RESULTS = 2048, 1 << 14
"""Products in a sum from which they are if there are few sums, since blocks share these."""


def expand_contractions(
    program: Program, policy: ContractionPolicy, forced: ProductForm | None = None
) -> Program:
    """The program with sums of products for all `matmul` that are not to be library calls.

    The policy decides, unless a form is `forced`.
    """
    if not any(eqn.op.name == "matmul" for eqn in walk(program.body)):
        return program

    at_once = folded_products(program) if policy.tiles and forced is None else frozenset()

    def expand(eqn: Eqn, defs: Defs) -> Replacement | None:
        left, right = (atom.type for atom in eqn.operands)
        if eqn.outputs[0] in at_once:
            return _sum_of_products(eqn)
        if policy.tiles and forced is None and _is_for_tiles(eqn, defs):
            has_joined = any(has_windows(x, defs) for x in eqn.operands)
            return _sum_over_joined_axes(eqn, defs) if has_joined else _sum_of_products(eqn)
        if forced == "nests" or not library_takes(left, right):
            return _sum_of_products(eqn)
        if left.ndim == 2:
            is_nest = is_thin(left, right, policy) or is_narrow(left, right, policy)
            return _sum_of_products(eqn) if is_nest and forced is None else None
        (of_left, _), (of_right, order) = (shared_batch(x, defs) for x in eqn.operands)
        if forced is None and of_left == of_right == 1 and are_small(left, right, policy):
            return _sum_of_products(eqn)
        if of_left > of_right and right.shape[-1] <= FEW_ROWS:
            flipped = _transposed(right), _transposed(left)
            if forced is not None or not is_thin(*flipped, policy, of_left):
                return _flipped(eqn, defs)
        long = [axis for axis in order if left.shape[axis] != 1]
        moved = of_right > 1 and long != sorted(long)
        if moved and left.shape[-2] > FEW_ROWS:
            moved, of_right = False, 1  # to make rows of them would copy many
        if forced is None and is_thin(left, right, policy, of_right):
            return _sum_of_products(eqn)
        return _with_batch_in_order(eqn, order) if moved else None

    expanded = rewrite(program, lambda: by_name({"matmul": expand}))
    return program if expanded is program else compose_views(expanded)


def is_thin(left: ArrayType, right: ArrayType, policy: ContractionPolicy, shared: int = 1) -> bool:
    """Whether (batch…, m, k) by (batch…, k, n) is faster as a reduction nest.

    `shared` is the number of products of the batch that have the same right factor, and are one
    product of as many rows as they have together.
    """
    (*batch, m, k), n = left.shape, right.shape[-1]
    m *= shared
    products = m * n * k
    elements = m * k + k * n + m * n
    if products <= policy.reuse * elements and prod(batch) * elements <= policy.most_elements:
        return True
    is_small = k <= policy.small_extent or products <= policy.small_products
    return is_small and prod(batch) // shared * products <= policy.most_products


def is_narrow(left: ArrayType, right: ArrayType, policy: ContractionPolicy) -> bool:
    """Whether a product of matrices with few rows or columns, or short sums, is computed by tiles,
    which what makes a factor and what follows are a part of.

    Microseconds of tiles and of the library, float32 on an H100: (2048, 10) in sums of 256 8.0,
    10.8; (1 << 18, 16) of 64 49, 53; (256, 10) of 65,536 42, 54; (1024, 16) of 16,384 39, 53;
    (256, 10) of 1024 5.4, 6.7; (2048, 256) of 10 5.1, 6.6; (16,384, 1024) of 16 34, 44. But
    (16,384, 16) of 1024 89, 69; (65,536, 10) of 256 47, 43: of many elements, in sums that are
    neither short nor long.
    """
    (m, k), n = left.shape, right.shape[-1]
    fits = policy.tiles and left.dtype == np.float32 and m * n * k >= MIN_TILED
    if not fits or min(m, n) < MIN_SIDE or k < MIN_SUMMED:
        return False
    if k <= policy.narrow:
        return True
    if min(m, n) > policy.narrow:
        return False
    if k >= LONG_SUMS:
        return m * n <= FEW_RESULTS
    elements = max(m, n) * k
    few = elements <= (FEW_ELEMENTS if k <= MEDIUM_SUMS else FEW_OF_LONGER)
    return k <= SHORT_SUMS or few


def are_small(left: ArrayType, right: ArrayType, policy: ContractionPolicy) -> bool:
    """Whether a batch of products is of small matrices, of which a block computes several by tiles.

    Milliseconds of tiles and of the library on an H100: 50,000 of 16² in float32 0.09, 0.23, in
    float64 0.12, 0.40; 20,000 of 32² 0.13, 0.28 and 0.21, 0.51; 2000 of 64² 0.08, 0.05 and 0.12,
    0.09. Long sums of small matrices are shared by blocks, which the library does for one alone.
    """
    (*batch, m, k), n = left.shape, right.shape[-1]
    dtype = np.dtype(np.float32) if is_half(left.dtype) else left.dtype
    fits = policy.tiles and dtype in TILED_DTYPES and max(m, n) <= SMALL_MATRIX
    reuses = min(m, n) >= MIN_SIDE and k >= MIN_SUMMED
    return fits and reuses and prod(batch) * m * n * k >= MIN_TILED


def _transposed(x: ArrayType) -> ArrayType:
    return x.with_shape((*x.shape[:-2], x.shape[-1], x.shape[-2]))


def _flipped(eqn: Eqn, defs: Defs) -> Replacement:
    """(yᵀ xᵀ)ᵀ, whose right factor is the former left one."""
    left, right = eqn.operands
    _, order = shared_batch(left, defs)
    rank = len(order)
    return _of_transposes(eqn, (right, left), (*order, rank + 1, rank))


def _with_batch_in_order(eqn: Eqn, order: tuple[int, ...]) -> Replacement:
    """The products that share their right factor next to each other in the batch."""
    rank = len(order)
    return _of_transposes(eqn, eqn.operands, (*order, rank, rank + 1))


def _of_transposes(eqn: Eqn, factors: Sequence[Atom], axes: tuple[int, ...]) -> Replacement:
    """The product of transposed factors, transposed back."""
    back = tuple([axes.index(axis) for axis in range(len(axes))])

    def transposed(x: Atom, axes: tuple[int, ...]) -> Eqn:
        return application("transpose", (x,), {"axes": axes}, eqn.source)

    first, second = (transposed(x, axes) for x in factors)
    product = application("matmul", (*first.outputs, *second.outputs), eqn.attrs, eqn.source)
    found = transposed(product.outputs[0], back)
    return Replacement(found.outputs, (first, second, product, found))


def _is_for_tiles(eqn: Eqn, defs: Defs) -> bool:
    """Whether a library would need a factor in memory that tiles make of fewer elements: windows of
    an array, or a matrix that is computed of its rows and columns.
    """
    left, right = eqn.operands
    (*batch, m, k), n = left.type.shape, right.type.shape[-1]
    if eqn.outputs[0].type.dtype != left.type.dtype or left.type.dtype not in TILED_DTYPES:
        return False
    is_made = [has_windows(x, defs) or is_made_of_less(x, defs) for x in (left, right)]
    others = min(n if is_made[0] else m, m if is_made[1] else n)
    if others > most_channels(left.type.dtype):
        return False
    is_large = min(m, n, k) >= max(MIN_SIDE, MIN_SUMMED) and prod(batch) * m * n * k >= MIN_TILED
    return is_large and any(is_made)


def most_channels(dtype: np.dtype[Any]) -> int:
    """Outputs for each element of a factor up to which tiles are faster than a library, for which
    the factor is stored.

    A copy costs as much as the products of some channels, and the library multiplies faster. On an
    H100, milliseconds of tiles and of the library: 64 channels of 32 x 56 x 56 x 64, float32 0.22,
    0.27; float64 0.38, 0.42; tf32 0.15, 0.20; 256 of 16 x 28 x 28 x 256, 0.49, 0.40; 0.79, 0.44;
    0.26, 0.19.
    """
    return MOST_CHANNELS if dtype == np.float32 else MOST_CHANNELS // 2


def _sum_over_joined_axes(eqn: Eqn, defs: Defs) -> Replacement:
    """The sums of x[…, m…, 1…, k…] * y[…, 1…, n…, k…], with the axes as they were before reshapes
    joined them: so elements of both are found without divisions.
    """
    left, right = eqn.operands
    *batch, _, _ = left.type.shape
    rank = len(batch)
    rows, summed = joined_axes(left, defs)[rank:]
    of_right, columns = joined_axes(right, defs)[rank:]
    summed = summed if len(summed) > 1 else of_right
    eqns: list[Eqn] = []

    def emit(name: str, *operands: Atom, **attrs: Any) -> Value:
        eqns.append(application(name, operands, attrs, eqn.source))
        return eqns[-1].outputs[0]

    turned = emit("transpose", right, axes=(*range(rank), rank + 1, rank))
    x = emit("reshape", left, shape=(*batch, *rows, *(1 for _ in columns), *summed))
    y = emit("reshape", turned, shape=(*batch, *(1 for _ in rows), *columns, *summed))
    eqns.append(product_of(x, y, eqn.attrs.get("precision"), eqn.source))
    (products,) = eqns[-1].outputs
    first = products.type.ndim - len(summed)
    found = emit("sum", products, axes=tuple(range(first, products.type.ndim)))
    result = emit("reshape", found, shape=eqn.outputs[0].type.shape)
    return Replacement((result,), tuple(eqns))


def product_of(x: Atom, y: Atom, precision: str | None, source: Source | None) -> Eqn:
    """The products of elements, in a precision; tiles have no other than float32 and tf32."""
    made = application("multiply", (x, y), {}, source)
    return replace(made, op=multiply_tf32) if precision == "tf32" else made


def _sum_of_products(eqn: Eqn) -> Replacement:
    """The sums over k of x[…, m, 1, k] * y[…, 1, n, k]; for bools, any of conjunctions.

    float16 and bfloat16 are multiplied and summed in float32, and rounded once if at all, as in
    libraries. The sums of float32 have any precision that is asked for.
    """
    left, right = eqn.operands
    (out,) = eqn.outputs
    *batch, m, k = left.type.shape
    n, dtype = right.type.shape[-1], out.type.dtype
    rank = len(batch)
    eqns: list[Eqn] = []

    def emit(name: str, *operands: Atom, **attrs: Any) -> Value:
        eqns.append(application(name, operands, attrs, eqn.source))
        return eqns[-1].outputs[0]

    def cast(x: Value, dtype: np.dtype[Any]) -> Value:
        return x if x.type.dtype == dtype else emit("cast", x, dtype=dtype)

    wide = np.dtype(np.float32) if is_half(dtype) else dtype
    multiply, fold = ("logical_and", "any") if wide.kind == "b" else ("multiply", "sum")

    # axes of one element would keep the sum from being fused with what has no such axes
    rows, columns = ((extent,) if extent != 1 else () for extent in (m, n))
    ones = (1,) * len(columns)
    turned = emit("transpose", right, axes=(*range(rank), rank + 1, rank))
    x = cast(emit("reshape", left, shape=(*batch, *rows, *ones, k)), wide)
    y = cast(emit("reshape", turned, shape=(*batch, *(1 for _ in rows), *columns, k)), wide)
    result = emit(multiply, x, y)
    if k != 1:  # else an outer product: nothing to fold
        result = emit(fold, result, axes=(len(result.type.shape) - 1,))
    result = emit("reshape", cast(result, dtype), shape=out.type.shape)
    return Replacement((result,), tuple(eqns))
