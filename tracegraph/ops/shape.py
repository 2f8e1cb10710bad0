"""Views: reshape, transpose, broadcast_to, slice. In a kernel they are index arithmetic.

The element rules keep indices affine where the operation allows it. Results are never weak: a view
of a Python number is an array.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from tracegraph.dtypes import bfloat16
from tracegraph.ir.derivative import Emitter, Linear
from tracegraph.ir.op import Indexed, Op, Operand, Sample, register
from tracegraph.ir.scalar import Expr, const
from tracegraph.ir.types import ArrayType
from tracegraph.ops import batching
from tracegraph.ops.checks import check_count, check_strided_range
from tracegraph.ops.cotangents import Types, filled, number, unbroadcast
from tracegraph.ops.sampling import ramp

Index = tuple[Expr, ...]
Ints = tuple[int, ...]


# reshape


def _reshape_type(x: ArrayType, *, shape: Ints) -> ArrayType:
    out = ArrayType(x.dtype, shape)
    if out.size != x.size:
        raise ValueError(
            f"reshape: {x} has {x.size} elements, shape {out.shape} has {out.size}; "
            "both must have the same number"
        )
    return out


@lru_cache(maxsize=1024)
def equal_products(old: Ints, new: Ints) -> list[tuple[list[int], list[int]]]:
    """The finest grouping of the axes of two non-empty shapes into runs of equal product.

    Axes of extent 1 are in no group.
    """
    runs = []
    left = [axis for axis, extent in enumerate(old) if extent != 1]
    right = [axis for axis, extent in enumerate(new) if extent != 1]
    while left:
        group, other = [left.pop(0)], [right.pop(0)]
        while (size := prod(old[a] for a in group)) != (goal := prod(new[a] for a in other)):
            if size < goal:
                group.append(left.pop(0))
            else:
                other.append(right.pop(0))
        runs.append((group, other))
    return runs


def _reshape_element(
    index: Index, operands: Sequence[Operand], out: ArrayType, *, shape: Ints
) -> Expr:
    (x,) = operands
    position: list[Expr] = [const(0)] * x.type.ndim
    for group, other in equal_products(x.type.shape, out.shape):
        flat = index[other[0]]
        for axis in other[1:]:
            flat = flat * out.shape[axis] + index[axis]
        for axis in reversed(group[1:]):
            position[axis] = flat % x.type.shape[axis]
            flat = flat // x.type.shape[axis]
        position[group[0]] = flat
    return x[tuple(position)]


def _reshape_samples() -> list[Sample]:
    cases: list[tuple[Ints, Ints, Any]] = [
        ((), (), np.float64),
        ((), (1, 1), np.int8),
        ((6,), (2, 3), np.float32),
        ((2, 3), (6,), bfloat16),
        ((4, 6), (2, 12), np.int64),
        ((2, 3, 4), (4, 3, 2), np.complex64),
        ((2, 1, 6), (1, 3, 4, 1), np.bool_),
        ((5, 4, 3), (5, 12), np.float16),
        ((2, 2, 3, 5), (2, 30), np.uint16),
        ((0, 3), (3, 2, 0), np.float64),
        ((1, 1), (), np.float64),
    ]
    return [Sample((ramp(old, dtype),), {"shape": new}) for old, new, dtype in cases]


def _unreshaped(f: Emitter, ct: Any, acc: Any, types: Types, x: Any, *, shape: Ints) -> tuple[Any]:
    return (f.reshape(ct, shape=types[0].shape),)


reshape = register(
    Op(
        "reshape",
        "The same elements, in row-major order, under another shape.",
        _reshape_type,
        lambda x, *, shape: np.reshape(x, shape),
        Indexed(_reshape_element, view=True),
        _reshape_samples,
        batch=batching.reshape,
        derivative=Linear(_unreshaped),
    )
)


# transpose


def _transpose_type(x: ArrayType, *, axes: Ints) -> ArrayType:
    if sorted(axes) != list(range(x.ndim)):
        raise ValueError(
            f"transpose: axes {axes} must be a permutation of the {x.ndim} axes of {x}"
        )
    return ArrayType(x.dtype, tuple(x.shape[axis] for axis in axes))


def _transpose_element(
    index: Index, operands: Sequence[Operand], out: ArrayType, *, axes: Ints
) -> Expr:
    return operands[0][tuple(index[axes.index(axis)] for axis in range(len(axes)))]


def _transpose_samples() -> list[Sample]:
    cases: list[tuple[Ints, Ints, Any]] = [
        ((), (), np.float64),
        ((3,), (0,), np.int16),
        ((2, 3), (1, 0), np.float32),
        ((2, 3, 4), (2, 0, 1), np.complex128),
        ((2, 1, 3, 2), (3, 1, 0, 2), bfloat16),
        ((0, 3), (1, 0), np.bool_),
    ]
    return [Sample((ramp(shape, dtype),), {"axes": axes}) for shape, axes, dtype in cases]


def _transposed_back(
    f: Emitter, ct: Any, acc: Any, types: Types, x: Any, *, axes: Ints
) -> tuple[Any]:
    return (f.transpose(ct, axes=tuple([axes.index(i) for i in range(len(axes))])),)


transpose = register(
    Op(
        "transpose",
        "The axes in another order: axis k of the result is axis axes[k] of x.",
        _transpose_type,
        lambda x, *, axes: np.transpose(x, axes),
        Indexed(_transpose_element, view=True),
        _transpose_samples,
        batch=batching.transpose,
        derivative=Linear(_transposed_back),
    )
)


# broadcast_to


def _broadcast_type(x: ArrayType, *, shape: Ints) -> ArrayType:
    added = len(shape) - x.ndim
    pairs = zip(x.shape, shape[max(added, 0) :], strict=False)
    if added < 0 or any(old not in (1, new) for old, new in pairs):
        raise ValueError(
            f"broadcast_to: {x} does not broadcast to {shape}: aligned from the right, its extents "
            "must be 1 or equal"
        )
    return ArrayType(x.dtype, shape)


def _broadcast_element(
    index: Index, operands: Sequence[Operand], out: ArrayType, *, shape: Ints
) -> Expr:
    (x,) = operands
    trailing = index[out.ndim - x.type.ndim :]
    pairs = zip(trailing, x.type.shape, strict=True)
    return x[tuple(const(0) if extent == 1 else i for i, extent in pairs)]


def _broadcast_samples() -> list[Sample]:
    cases: list[tuple[Ints, Ints, Any]] = [
        ((), (), np.float64),
        ((), (2, 3), np.float16),
        ((3,), (2, 3), np.int32),
        ((2, 1), (2, 3), np.complex64),
        ((1, 3, 1), (2, 2, 3, 2), bfloat16),
        ((1,), (0,), np.float64),
        ((1, 3), (0, 3), np.bool_),
    ]
    return [Sample((ramp(old, dtype),), {"shape": new}) for old, new, dtype in cases]


def _unbroadcast(f: Emitter, ct: Any, acc: Any, types: Types, x: Any, *, shape: Ints) -> tuple[Any]:
    return (unbroadcast(f, ct, types[0]),)


broadcast_to = register(
    Op(
        "broadcast_to",
        "x repeated along new leading axes and along its axes of extent 1.",
        _broadcast_type,
        lambda x, *, shape: np.broadcast_to(x, shape),
        Indexed(_broadcast_element, view=True),
        _broadcast_samples,
        batch=batching.broadcast_to,
        derivative=Linear(_unbroadcast),
    )
)


# slice


def _slice_type(x: ArrayType, *, starts: Ints, steps: Ints, sizes: Ints) -> ArrayType:
    for what, given in (("starts", starts), ("steps", steps), ("sizes", sizes)):
        check_count("slice", what, given, x.ndim)
    for axis, strided in enumerate(zip(x.shape, starts, steps, sizes, strict=True)):
        check_strided_range("slice", axis, *strided)
    return ArrayType(x.dtype, sizes)


def python_slices(starts: Sequence[int], steps: Ints, sizes: Ints) -> tuple[Any, ...]:
    """The NumPy index for starts, steps and sizes; the ellipsis makes it a view of scalars too."""
    slices = []
    for start, step, size in zip(starts, steps, sizes, strict=True):
        stop = start + step * size  # below 0 it would count from the end
        slices.append(slice(start, stop if stop >= 0 else None, step) if size else slice(0, 0))
    return (*slices, ...)


def _slice_element(
    index: Index,
    operands: Sequence[Operand],
    out: ArrayType,
    *,
    starts: Ints,
    steps: Ints,
    sizes: Ints,
) -> Expr:
    strided = zip(index, starts, steps, strict=True)
    return operands[0][tuple([i * step + start for i, start, step in strided])]


def _slice_samples() -> list[Sample]:
    cases: list[tuple[Ints, Ints, Ints, Ints, Any]] = [
        ((), (), (), (), np.float64),
        ((7,), (1,), (2,), (3,), np.float32),
        ((7,), (6,), (-1,), (7,), np.int16),
        ((7,), (5,), (-2,), (3,), np.bool_),
        ((4, 5), (3, 0), (-3, 1), (2, 5), np.complex64),
        ((2, 3, 4), (0, 1, 3), (1, 1, -1), (2, 1, 4), bfloat16),
        ((2, 3, 1, 4), (1, 0, 0, 0), (1, 2, 1, 3), (1, 2, 1, 2), np.uint8),
        ((4,), (9,), (1,), (0,), np.float64),
        ((0, 2), (0, 1), (1, -1), (0, 2), np.float64),
    ]
    return [
        Sample((ramp(shape, dtype),), {"starts": starts, "steps": steps, "sizes": sizes})
        for shape, starts, steps, sizes, dtype in cases
    ]


_PART = 4
"""The cotangent of a slice of at least 1/_PART of an array is padded, and the sum fuses: that of a
5-point stencil is 2 kernels instead of 6, and takes 9 ms instead of 14 (1000 x 1000 float64, host).
"""

_SMALL = 256
"""Elements of an array up to which the cotangent of any slice is padded: kernels cost more."""


def _unsliced(
    f: Emitter,
    ct: Any,
    acc: Any,
    types: Types,
    x: Any,
    *,
    starts: Ints,
    steps: Ints,
    sizes: Ints,
) -> tuple[Any]:
    """Padded with zeros and added to the cotangent so far, which fuses with what is around it; a
    small part of a large array is added in place.
    """
    (type_,) = types
    if 0 in sizes:
        return (acc,)
    whole = acc is None or _PART * prod(sizes) >= type_.size or type_.size <= _SMALL
    if whole and all(step == 1 for step in steps):
        spans = zip(type_.shape, starts, sizes, strict=True)
        high = tuple([extent - start - size for extent, start, size in spans])
        padded = f.pad(ct, number(ct, 0), low=starts, high=high)
        return (padded if acc is None else f.add(acc, padded),)
    acc = filled(f, type_) if acc is None else acc
    return (f.scatter_add(acc, ct, dims=(), starts=starts, steps=steps),)


slice_ = register(
    Op(
        "slice",
        "Elements start, start + step, … (size of them) along every axis; steps may be negative.",
        _slice_type,
        lambda x, *, starts, steps, sizes: np.asarray(x)[python_slices(starts, steps, sizes)],
        Indexed(_slice_element, view=True),
        _slice_samples,
        batch=batching.slice_,
        derivative=Linear(_unsliced, accumulates=True),
    )
)
