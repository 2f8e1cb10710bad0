"""Windows that slide along an axis, and the shear that gathers what they have in common.

    windows:  result[…, p, …, i] = x[…, p + i, …]
    shear:    result[…, p, …, i] = x[…, p + i, …, i]        in reverse: x[…, p + size - 1 - i, …, i]

Both only rename elements. The derivative of windows is the sum of sheared ones, without an update
of the array for each window.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracegraph.dtypes import bfloat16
from tracegraph.ir.derivative import Emitter, Linear
from tracegraph.ir.op import Indexed, Op, Operand, Sample, register
from tracegraph.ir.scalar import Expr
from tracegraph.ir.types import ArrayType
from tracegraph.ops import batching
from tracegraph.ops.checks import check_axes
from tracegraph.ops.cotangents import Types, number
from tracegraph.ops.sampling import ramp

Index = tuple[Expr, ...]
Ints = tuple[int, ...]


def _count(op: str, extent: int, size: int) -> int:
    """The number of windows of a size along an axis."""
    if not 0 <= size <= extent:
        raise ValueError(f"{op}: windows of {size} do not fit an axis of {extent} elements")
    return extent - size + 1


def _padded(f: Emitter, x: Any, axis: int, size: int) -> Any:
    """An array with zeros before and after an axis, for the windows that reach beyond."""
    widths = tuple([size - 1 if k == axis else 0 for k in range(x.ndim)])
    return f.pad(x, number(x, 0), low=widths, high=widths)


# windows


def _windows_type(x: ArrayType, *, axis: int, size: int) -> ArrayType:
    check_axes("windows", (axis,), x.ndim)
    count = _count("windows", x.shape[axis], size)
    return ArrayType(x.dtype, (*x.shape[:axis], count, *x.shape[axis + 1 :], size))


def _windows_element(
    index: Index, operands: Sequence[Operand], out: ArrayType, *, axis: int, size: int
) -> Expr:
    *position, inside = index
    position[axis] = position[axis] + inside
    return operands[0][tuple(position)]


def _windows_samples() -> list[Sample]:
    cases: list[tuple[Ints, int, int, Any]] = [
        ((5,), 0, 3, np.float64),
        ((4, 6), 0, 2, np.float32),
        ((4, 6), 1, 6, np.complex64),
        ((2, 5, 3), 1, 1, bfloat16),
        ((3, 2), 1, 0, np.int16),
        ((0, 3), 1, 2, np.bool_),
    ]
    return [
        Sample((ramp(shape, dtype),), {"axis": axis, "size": size})
        for shape, axis, size, dtype in cases
    ]


def _windows_back(
    f: Emitter, ct: Any, acc: Any, types: Types, x: Any, *, axis: int, size: int
) -> tuple[Any]:
    if not size:
        return (None,)
    sheared = f.shear(_padded(f, ct, axis, size), axis=axis, reverse=True)
    return (f.sum(sheared, axes=(ct.ndim - 1,)),)


windows = register(
    Op(
        "windows",
        "The windows of a size along an axis: their positions in its place, and a new last axis.",
        _windows_type,
        lambda x, *, axis, size: np.array(
            np.lib.stride_tricks.sliding_window_view(np.asarray(x), size, axis)
        ),
        Indexed(_windows_element, view=True),
        _windows_samples,
        batch=batching.windows,
        derivative=Linear(_windows_back),
    )
)


# shear


def _shear_type(x: ArrayType, *, axis: int, reverse: bool) -> ArrayType:
    check_axes("shear", (axis, x.ndim - 1), x.ndim)
    count = _count("shear", x.shape[axis], x.shape[-1])
    return ArrayType(x.dtype, (*x.shape[:axis], count, *x.shape[axis + 1 :]))


def _shear_reference(x: Any, *, axis: int, reverse: bool) -> np.ndarray[Any, Any]:
    x = np.asarray(x)
    size = x.shape[-1]
    count = x.shape[axis] - size + 1
    starts = [size - 1 - i if reverse else i for i in range(size)]
    parts = [
        np.take(x[..., i], range(start, start + count), axis) for i, start in enumerate(starts)
    ]
    if parts:
        return np.stack(parts, axis=-1)
    return np.zeros((*x.shape[:axis], count, *x.shape[axis + 1 :]), x.dtype)


def _shear_element(
    index: Index, operands: Sequence[Operand], out: ArrayType, *, axis: int, reverse: bool
) -> Expr:
    position, inside = list(index), index[-1]
    position[axis] = position[axis] + (out.shape[-1] - 1 - inside if reverse else inside)
    return operands[0][tuple(position)]


def _shear_samples() -> list[Sample]:
    cases: list[tuple[Ints, int, bool, Any]] = [
        ((5, 3), 0, False, np.float64),
        ((5, 3), 0, True, np.float32),
        ((2, 6, 4, 2), 1, True, np.complex128),
        ((4, 3, 3), 1, False, bfloat16),
        ((3, 2, 0), 1, True, np.int8),
    ]
    return [
        Sample((ramp(shape, dtype),), {"axis": axis, "reverse": reverse})
        for shape, axis, reverse, dtype in cases
    ]


def _sheared_back(
    f: Emitter, ct: Any, acc: Any, types: Types, x: Any, *, axis: int, reverse: bool
) -> tuple[Any]:
    size = ct.shape[-1]
    if not size:
        return (None,)
    return (f.shear(_padded(f, ct, axis, size), axis=axis, reverse=not reverse),)


shear = register(
    Op(
        "shear",
        "Each index along the last axis has an axis moved by that many elements.",
        _shear_type,
        _shear_reference,
        Indexed(_shear_element, view=True),
        _shear_samples,
        batch=batching.shear,
        derivative=Linear(_sheared_back),
    )
)
