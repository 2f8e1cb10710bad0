"""Matrix products: a library call if the library has the dtype, else a reduction."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from lowering.draft.stage import NodeStage
from lowering.plan.buffer import Buffer
from lowering.plan.kernel import Accumulator, space_index
from lowering.plan.library_call import StridedArray
from lowering.plan.matrix_product import MatrixOperand, MatrixProduct
from lowering.plan.nodes import LibraryNode
from lowering.planning.library_operands import operand
from lowering.planning.region_builder import RegionBuilder
from tracegraph.dtypes import bfloat16, is_half
from tracegraph.ir import op
from tracegraph.ir.combiners import ADD, LOGICAL_OR
from tracegraph.ir.program import Atom, Eqn
from tracegraph.ir.scalar import Expr
from tracegraph.ir.scalar_values import Accumulated, apply

LIBRARY_DTYPES = frozenset(
    {bfloat16, *map(np.dtype, (np.float16, np.float32, np.float64, np.complex64, np.complex128))}
)

LIBRARY_MAX = 2**31 - 1
"""Extents and strides that the library takes as 32-bit integers. Its calls for larger ones sum
serially: a product of two vectors of 2³¹ bfloat16 took 82 s, and its sum stopped at 2²⁴ (H200)."""


def matrix_product(builder: RegionBuilder, eqn: Eqn) -> None:
    """Emit left @ right for (batch…, m, k) by (batch…, k, n)."""
    left, right = eqn.operands
    target = builder.result(eqn)
    *_, m, k = left.type.shape
    n = right.type.shape[-1]
    extents = (*left.type.shape, *right.type.shape)
    if target.type.dtype in LIBRARY_DTYPES and k > 0 and max(extents) <= LIBRARY_MAX:
        if target.type.size:
            _library(builder, left, right, target, (m, n, k))
    else:
        _reduction(builder, left, right, target, k)


def _library(
    builder: RegionBuilder, left: Atom, right: Atom, target: Buffer, sizes: tuple[int, int, int]
) -> None:
    m, n, k = sizes
    batch = target.type.size // (m * n)
    out = MatrixOperand(target, 0, m * n, n, 1)
    x, y = operand(builder, left, _matrix), operand(builder, right, _matrix)
    call = MatrixProduct(batch, m, n, k, x, y, out)
    builder.add(NodeStage(LibraryNode(call, builder.sources)))


def _matrix(array: StridedArray) -> MatrixOperand | None:
    """The array as a batch of matrices, if the library takes it as one."""
    shape, strides = array.shape, array.strides
    batch = _batch_stride(shape[:-2], strides[:-2])
    (rows, columns), (row, column) = shape[-2:], strides[-2:]
    row, column = _leading(rows, columns, row, column)
    if batch is None or batch < 0 or not _is_accepted(rows, columns, row, column):
        return None
    return MatrixOperand(array.buffer, array.offset, batch, row, column)


def _leading(rows: int, columns: int, row: int, column: int) -> tuple[int, int]:
    """Strides that the library accepts, given that along one element any stride will do."""
    if rows == 1 and columns == 1:
        return 1, 1
    if columns == 1:
        return (row, 1) if row != 1 else (1, max(rows, 1))
    if rows == 1:
        return (max(columns, 1), 1) if column == 1 else (1, column)
    return row, column


def _is_accepted(rows: int, columns: int, row: int, column: int) -> bool:
    if max(row, column) > LIBRARY_MAX:
        return False
    return (column == 1 and row >= max(columns, 1)) or (row == 1 and column >= max(rows, 1))


def _batch_stride(extents: tuple[int, ...], strides: tuple[int, ...]) -> int | None:
    """The stride of the flattened batch axes, if they have one."""
    axes = [(n, s) for n, s in zip(extents, strides, strict=True) if n != 1]
    if not axes:
        return 0
    for (_, outer), (inner_extent, inner) in pairwise(axes):
        if outer != inner * inner_extent:
            return None
    return axes[-1][1]


def _reduction(builder: RegionBuilder, left: Atom, right: Atom, target: Buffer, k: int) -> None:
    """Sums of products (for bools: any of conjunctions), as a kernel.

    float16 and bfloat16 are multiplied and summed in float32, as in libraries.
    """
    space = target.type.shape
    *batch, row, column = space_index(space)
    (inner,) = space_index((k,), first=len(space))
    x = builder.element(left, (*batch, row, inner), None)
    y = builder.element(right, (*batch, inner, column), None)
    wide = np.dtype(np.float32) if is_half(target.type.dtype) else target.type.dtype
    boolean = wide.kind == "b"
    factors = (_cast(x, wide), _cast(y, wide))
    product = apply(op.get("logical_and" if boolean else "multiply"), factors, wide, {})
    accumulator = Accumulator(LOGICAL_OR if boolean else ADD, product)
    value = _cast(Accumulated.make(0, wide), target.type.dtype)
    builder.emit_reduction(space, k, accumulator, value, target)


def _cast(x: Expr, dtype: np.dtype[Any]) -> Expr:
    return x if x.dtype == dtype else apply(op.get("cast"), (x,), dtype, {"dtype": dtype})
