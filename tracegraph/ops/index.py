"""Gathers: reading at indices that are data."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tracegraph.dtypes import bfloat16
from tracegraph.ir.derivative import Emitter, Linear
from tracegraph.ir.op import Indexed, Op, Operand, Sample, register
from tracegraph.ir.scalar import Expr, clamp, select
from tracegraph.ir.scalar_values import as_index
from tracegraph.ir.types import ArrayType
from tracegraph.ops import batching
from tracegraph.ops.checks import check_axes, check_count, check_distinct, check_indices
from tracegraph.ops.cotangents import Types, clipped, filled
from tracegraph.ops.sampling import ramp
from tracegraph.ops.shape import python_slices

Index = tuple[Expr, ...]
Ints = tuple[int, ...]
NDArray = np.ndarray[Any, Any]


def wrapped_index(value: Expr, extent: int) -> Expr:
    """An integer value as an index into an axis, a negative one counted from the end."""
    index = as_index(value)
    return index if value.dtype.kind == "u" else select(index < 0, index + extent, index)


def wrapped_indices(indices: Any, extent: int) -> NDArray:
    """The same for an array of indices. They may still be out of range."""
    given = np.asarray(indices)
    found = given.astype(np.int64)
    return found if given.dtype.kind == "u" else np.where(found < 0, found + extent, found)


def other_axes(ndim: int, dims: Ints) -> Ints:
    """The axes of an array that are not in `dims`."""
    return tuple(axis for axis in range(ndim) if axis not in dims)


# gather
#
# `distinct` is the number of trailing axes of the index arrays along which no two reads are of one
# element, where that is known: the transpose needs no order among them.


def _gather_type(x: ArrayType, *indices: ArrayType, dims: Ints, distinct: int = 0) -> ArrayType:
    check_axes("gather", dims, x.ndim)
    check_count("gather", "dims (one per index array)", dims, len(indices))
    if not indices:
        raise ValueError("gather: needs at least one index array, got none")
    batch = indices[0].shape
    check_indices("gather", indices, batch)
    check_distinct("gather", distinct, batch)
    empty = [axis for axis in dims if x.shape[axis] == 0]
    if empty and indices[0].size:
        raise ValueError(f"gather: cannot take elements of axis {empty[0]} of {x}, which is empty")
    return ArrayType(x.dtype, batch + tuple(x.shape[axis] for axis in other_axes(x.ndim, dims)))


def _gather_reference(x: Any, *indices: Any, dims: Ints, distinct: int = 0) -> NDArray:
    x = np.asarray(x)
    front = x.transpose(*dims, *other_axes(x.ndim, dims))
    extents = front.shape[: len(dims)]
    wrapped = map(wrapped_indices, indices, extents)
    clamped = [
        np.clip(index, 0, max(extent - 1, 0))
        for index, extent in zip(wrapped, extents, strict=True)
    ]
    return np.asarray(front[tuple(clamped)])


def _gather_element(
    index: Index, operands: Sequence[Operand], out: ArrayType, *, dims: Ints, distinct: int = 0
) -> Expr:
    x, *indices = operands
    rank = indices[0].type.ndim
    batch = index[:rank]
    position = dict(zip(other_axes(x.type.ndim, dims), index[rank:], strict=True))
    for axis, values in zip(dims, indices, strict=True):
        extent = x.type.shape[axis]
        position[axis] = clamp(wrapped_index(values[batch], extent), 0, extent - 1)
    return x[tuple(position[axis] for axis in range(x.type.ndim))]


def _gather_run(x: ArrayType, *, dims: Ints, distinct: int = 0) -> int:
    return prod(x.shape[max(dims) + 1 :])


def _gather_samples() -> list[Sample]:
    square = np.array([[0, -1, 2], [9, -9, 1]])
    return [
        Sample((ramp((5,)), np.array(-2)), {"dims": (0,)}),
        Sample((ramp((5,), np.float32), np.array([4, 0, 0, 7, -5, -8], np.int32)), {"dims": (0,)}),
        Sample((ramp((5,), np.int16), np.array([4, 200, 0], np.uint8)), {"dims": (0,)}),
        Sample((ramp((3, 4), bfloat16), square), {"dims": (0,)}),
        Sample((ramp((2, 3, 4), np.complex64), square.astype(np.int8)), {"dims": (1,)}),
        Sample((ramp((3, 4), np.bool_), square, square[::-1].copy()), {"dims": (0, 1)}),
        Sample(
            (ramp((3, 2, 1, 4)), np.array([1, -1]), np.array([-4, 3], np.int16)), {"dims": (0, 3)}
        ),
        Sample((ramp((3, 4)), np.zeros((0, 2), np.int64)), {"dims": (1,)}),
        Sample((ramp((0, 4)), np.array([1, 2])), {"dims": (1,)}),
        Sample((ramp((0, 4)), np.zeros(0, np.int64)), {"dims": (0,)}),
    ]


def _ungathered(
    f: Emitter,
    ct: Any,
    acc: Any,
    types: Types,
    x: Any,
    *indices: Any,
    dims: Ints,
    distinct: int = 0,
) -> tuple[Any]:
    """Reads clamp, but writes drop what is out of range: so the indices are clamped first."""
    type_: ArrayType = types[0]
    places = [clipped(f, i, type_.shape[axis]) for i, axis in zip(indices, dims, strict=True)]
    rest = type_.ndim - len(dims)
    acc = filled(f, type_) if acc is None else acc
    attrs: dict[str, Any] = {"dims": dims, "starts": (0,) * rest, "steps": (1,) * rest}
    if distinct:
        attrs["distinct"] = distinct
    return (f.scatter_add(acc, ct, *places, **attrs),)


gather = register(
    Op(
        "gather",
        "Elements at index arrays along the axes dims; negative indices wrap once, then clamp.",
        _gather_type,
        _gather_reference,
        Indexed(_gather_element, run=_gather_run),
        _gather_samples,
        batch=batching.gather,
        derivative=Linear(_ungathered, accumulates=True),
    )
)


# dynamic_slice


def check_window(op: str, x: ArrayType, starts: Sequence[ArrayType], sizes: Ints) -> None:
    """Require a window that fits into x and one scalar integer start per axis.

    Raises:
        TypeError: a start is not an integer.
        ValueError: a start is not a scalar, a count is wrong, or the window is larger than x.
    """
    check_count(op, "starts", starts, x.ndim)
    check_count(op, "sizes", sizes, x.ndim)
    check_indices(op, starts, ())
    if any(not 0 <= size <= extent for size, extent in zip(sizes, x.shape, strict=True)):
        raise ValueError(f"{op}: a window of shape {sizes} does not fit into {x}")


def window_start(start: Operand, extent: int, size: int) -> Expr:
    """The start of a window along an axis, clamped so that the window fits."""
    return clamp(as_index(start[()]), 0, extent - size)


def window(x: NDArray, starts: Sequence[Any], sizes: Ints) -> NDArray:
    """The window of x as a view, its starts clamped so that it fits."""
    spans = zip(starts, x.shape, sizes, strict=True)
    fitting = [min(max(int(np.int64(start)), 0), extent - size) for start, extent, size in spans]
    view: NDArray = x[python_slices(fitting, (1,) * x.ndim, sizes)]
    return view


def _dynamic_slice_type(x: ArrayType, *starts: ArrayType, sizes: Ints) -> ArrayType:
    check_window("dynamic_slice", x, starts, sizes)
    return ArrayType(x.dtype, sizes)


def _dynamic_slice_element(
    index: Index, operands: Sequence[Operand], out: ArrayType, *, sizes: Ints
) -> Expr:
    x, *starts = operands
    spans = zip(index, starts, x.type.shape, sizes, strict=True)
    return x[tuple(i + window_start(start, extent, size) for i, start, extent, size in spans)]


def window_samples() -> list[tuple[NDArray, tuple[NDArray, ...], Ints]]:
    """Arrays, starts and window shapes; some starts are out of range."""
    return [
        (ramp(()), (), ()),
        (ramp((6,), np.float32), (np.array(2),), (3,)),
        (ramp((6,), np.int8), (np.array(5, np.int32),), (3,)),
        (ramp((6,), np.bool_), (np.array(-1, np.int8),), (1,)),
        (ramp((3, 4), np.complex128), (np.array(1), np.array(200, np.uint8)), (2, 4)),
        (ramp((2, 3, 1, 4), bfloat16), tuple(map(np.array, (0, -7, 3, 1))), (1, 2, 1, 3)),
        (ramp((3, 4)), (np.array(1), np.array(9)), (2, 0)),
    ]


def _unwindowed(
    f: Emitter, ct: Any, acc: Any, types: Types, x: Any, *starts: Any, sizes: Ints
) -> tuple[Any]:
    """Added to the cotangent so far in place."""
    if acc is None:
        acc = filled(f, types[0])
    else:
        ct = f.add(f.dynamic_slice(acc, *starts, sizes=sizes), ct)
    return (f.dynamic_update_slice(acc, ct, *starts),)


dynamic_slice = register(
    Op(
        "dynamic_slice",
        "A window of static shape whose scalar starts are data, clamped so that it fits.",
        _dynamic_slice_type,
        lambda x, *starts, sizes: window(np.asarray(x), starts, sizes),
        Indexed(_dynamic_slice_element),
        lambda: [Sample((x, *starts), {"sizes": sizes}) for x, starts, sizes in window_samples()],
        batch=batching.dynamic_slice,
        derivative=Linear(_unwindowed, accumulates=True),
    )
)
