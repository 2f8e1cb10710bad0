"""Matrix products as library calls; `contractions` has replaced the others by sums."""

from __future__ import annotations

from math import prod

import numpy as np

from lowering.draft.stage import NodeStage
from lowering.plan.calls.library_call import StridedArray
from lowering.plan.calls.matrix_product import MatrixOperand, MatrixProduct
from lowering.plan.nests.strides import common_stride
from lowering.plan.nodes import LibraryNode
from lowering.planning.expansion.shared_factors import once, shared_axes, with_rows
from lowering.planning.library_operands import in_memory, view
from lowering.planning.region_builder import RegionBuilder
from tracegraph.dtypes import bfloat16
from tracegraph.ir.program import Atom, Eqn
from tracegraph.ir.record import replace
from tracegraph.ir.types import ArrayType

LIBRARY_DTYPES = frozenset(
    {bfloat16, *map(np.dtype, (np.float16, np.float32, np.float64, np.complex64, np.complex128))}
)

LIBRARY_MAX = 2**31 - 1
"""Extents and strides that the library takes as 32-bit integers. Its calls for larger ones sum
serially: a product of two vectors of 2³¹ bfloat16 took 82 s, and its sum stopped at 2²⁴ (H200)."""


FEW_ROWS = 32
"""Rows of each of many products that share their right factor, up to which these are copied to be
rows of one product, where they are apart in memory. An estimate: tiles of libraries have 64 or 128
rows, and a copy moves each element twice."""


def library_takes(left: ArrayType, right: ArrayType) -> bool:
    """Whether the library has the product, for its dtype and extents, and it computes anything."""
    *batch, m, k = left.shape
    n = right.shape[-1]
    extents = (*left.shape, *right.shape)
    is_counted = k > 0 and 0 not in (*batch, m, n) and max(extents) <= LIBRARY_MAX
    return left.dtype in LIBRARY_DTYPES and is_counted


def matrix_product(builder: RegionBuilder, eqn: Eqn) -> None:
    """Emit left @ right for (batch…, m, k) by (batch…, k, n), which `library_takes`.

    Those that share a right factor and are next to each other are one product of more rows.
    """
    left, right = eqn.operands
    target = builder.result(eqn)
    axes = _axes_of_rows(builder, left, right)
    *outer, m, k = left.type.shape
    n = right.type.shape[-1]
    rows = m * prod(outer[len(outer) - axes :])
    batch = target.type.size // (rows * n)
    out = MatrixOperand(target, 0, rows * n, n, 1)
    x = in_memory(builder, left, lambda array: _matrix(with_rows(array, axes)))
    y = in_memory(builder, right, lambda array: _matrix(once(array, axes)))
    call = MatrixProduct(batch, rows, n, k, x, y, out)
    context = builder.context
    moving = [buffer for buffer in (x.buffer, y.buffer) if context.is_movable(buffer)]
    if not context.costs.updates_libraries and _is_by_pointer(call, builder):
        call = replace(call, by_pointer=True)
    elif moving:
        call = call.with_buffers({buffer: context.stage_input(buffer) for buffer in moving})
    builder.add(NodeStage(LibraryNode(call, builder.sources)))


def _with_rows(array: StridedArray | None, axes: int) -> MatrixOperand | None:
    return None if array is None else _matrix(with_rows(array, axes))


def _axes_of_rows(builder: RegionBuilder, left: Atom, right: Atom) -> int:
    """How many axes of the batch, the last ones, are to be rows."""
    if right.type.ndim == 2:
        return 0
    y = view(builder, right)
    axes = 0 if y is None else shared_axes(y)
    *outer, m, _ = left.type.shape
    count = prod(outer[len(outer) - axes :])
    if count == 1 or m * count > LIBRARY_MAX:
        return 0
    x = view(builder, left)
    is_copied = x is None or _matrix(x) is None
    if is_copied or m <= FEW_ROWS or _with_rows(x, axes) is not None:
        return axes
    return 0


def _is_by_pointer(call: MatrixProduct, builder: RegionBuilder) -> bool:
    """Whether the library is to find the matrices by pointer: it can, and copies take longer."""
    policy, forced = builder.context.target.operands, builder.context.operands
    if forced == "staged" or policy is None or call.batch > policy.most_matrices:
        return False
    if not all(_is_aligned(o, call.batch) for o in (call.left, call.right, call.target)):
        return False
    dtype = call.target.buffer.type.dtype
    sizes = (call.batch, call.m, call.n, call.k)
    return forced == "in_place" or policy.prefers(dtype, *sizes, builder.runs)


def _is_aligned(operand: MatrixOperand, batch: int) -> bool:
    """Whether all matrices are as aligned as the buffer is."""
    strides = (operand.offset, operand.batch_stride if batch > 1 else 0)
    itemsize = operand.buffer.type.dtype.itemsize
    return all(stride * itemsize % MatrixProduct.alignment == 0 for stride in strides)


def _matrix(array: StridedArray | None) -> MatrixOperand | None:
    """The array as a batch of matrices, if the library takes it as one."""
    if array is None:
        return None
    shape, strides = array.shape, array.strides
    batch = common_stride(shape[:-2], strides[:-2])
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
