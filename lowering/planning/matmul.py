"""Matrix products as library calls; `contractions` has replaced the others by sums."""

from __future__ import annotations

from math import prod

from lowering.draft.draft_nodes import FinishedNode
from lowering.plan.calls.library_call import StridedArray
from lowering.plan.calls.matrix_product import (
    FEW_ROWS,
    LIBRARY_MAX,
    MatrixOperand,
    MatrixProduct,
    as_matrices,
)
from lowering.plan.nodes import LibraryNode
from lowering.planning.expansion.shared_factors import once, shared_axes, with_rows
from lowering.planning.library_operands import in_memory, view
from lowering.planning.region_builder import RegionBuilder
from tracegraph.ir.program import Atom, Eqn
from tracegraph.ir.record import replace
from tracegraph.modes import Precision


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
    x = in_memory(builder, left, lambda array: as_matrices(with_rows(array, axes)))
    y = in_memory(builder, right, lambda array: as_matrices(once(array, axes)))
    precision: Precision = eqn.attrs.get("precision", "float32")
    call = MatrixProduct(batch, rows, n, k, x, y, out, precision=precision)
    context = builder.context
    moving = [buffer for buffer in (x.buffer, y.buffer) if context.is_movable(buffer)]
    if not context.costs.updates_libraries and _is_by_pointer(call, builder):
        call = replace(call, by_pointer=True)
    elif moving:
        call = call.with_buffers({buffer: context.scratch_copy_of(buffer) for buffer in moving})
    builder.add(FinishedNode(LibraryNode(call, builder.sources)))


def _with_rows(array: StridedArray | None, axes: int) -> MatrixOperand | None:
    return None if array is None else as_matrices(with_rows(array, axes))


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
    is_copied = x is None or as_matrices(x) is None
    if is_copied or m <= FEW_ROWS or _with_rows(x, axes) is not None:
        return axes
    return 0


def _is_by_pointer(call: MatrixProduct, builder: RegionBuilder) -> bool:
    """Whether the library is to find the matrices by pointer: it can, and copies take longer."""
    policy, forced = builder.context.target.operands, builder.context.operands
    if forced == "copied" or policy is None or call.batch > policy.most_matrices:
        return False
    if not all(_is_aligned(o, call.batch) for o in (call.left, call.right, call.target)):
        return False
    dtype = call.left.buffer.type.dtype
    sizes = (call.batch, call.m, call.n, call.k)
    return forced == "in_place" or policy.prefers(dtype, *sizes, builder.runs)


def _is_aligned(operand: MatrixOperand, batch: int) -> bool:
    """Whether all matrices are as aligned as the buffer is."""
    strides = (operand.offset, operand.batch_stride if batch > 1 else 0)
    itemsize = operand.buffer.type.dtype.itemsize
    return all(stride * itemsize % MatrixProduct.alignment == 0 for stride in strides)
