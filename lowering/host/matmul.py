"""Matrix products of library nodes, with NumPy's matmul on strided views."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lowering.host.arena import Array
from lowering.host.instructions import View
from lowering.plan.nodes import LibraryNode, MatrixOperand


def product(node: LibraryNode) -> tuple[Callable[..., object], tuple[View, View, View]]:
    """A function, and the views that it takes: left, right, target."""
    left = _matrices(node.left, node.batch, node.m, node.k)
    right = _matrices(node.right, node.batch, node.k, node.n)
    target = _matrices(node.target, node.batch, node.m, node.n)
    half = target.dtype.itemsize == 2 and target.dtype.kind in "fV"
    return _half_product if half else np.matmul, (left, right, target)


def _matrices(operand: MatrixOperand, batch: int, rows: int, columns: int) -> View:
    dtype = operand.buffer.type.dtype
    shape: tuple[int, ...] = (rows, columns)
    steps: tuple[int, ...] = (operand.row_stride, operand.column_stride)
    if batch != 1:
        shape, steps = (batch, *shape), (operand.batch_stride, *steps)
    strides = tuple(step * dtype.itemsize for step in steps)
    return View(dtype, shape, {}, operand.buffer, strides, operand.offset * dtype.itemsize)


def _half_product(left: Array, right: Array, out: Array) -> None:
    """16-bit floats are multiplied and summed in float32 and rounded once."""
    out[...] = np.matmul(left.astype(np.float32), right.astype(np.float32)).astype(out.dtype)
