"""Functions that join arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index
from numpy.typing import DTypeLike

from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.ir.types import result_type, type_of
from tracegraph.numpy.axes import moveaxis
from tracegraph.numpy.dispatching.dispatch import (
    as_array,
    copied,
    lifted,
    numpy_function,
    unchecked,
)
from tracegraph.numpy.dispatching.output import Casting, stored
from tracegraph.numpy.shapes import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_to,
    expand_dims,
    reshape,
)

__all__ = [
    "append", "column_stack", "concat", "concatenate", "dstack", "hstack", "meshgrid", "stack",
    "vstack",
]  # fmt: skip

MOST_JOINED = 1024
"""Arrays that one op joins: its kernel has a pointer parameter for each, and CUDA takes 4095."""


def _row_of(arrays: Any) -> list[Any]:
    """The arrays of a sequence, or the rows of one array."""
    return [as_array(a) for a in arrays]


def _joined(
    name: str,
    arrays: Sequence[Any],
    axis: int,
    out: Any,
    dtype: DTypeLike | None,
    casting: Casting,
) -> Any:
    """Arrays joined along an axis, in another dtype if `casting` allows it, or written to `out`."""
    if not arrays:
        raise ValueError("need at least one array to join")
    if out is not None and dtype is not None:
        raise TypeError(f"{name}() only takes `out` or `dtype` as an argument, but both were given")
    common = result_type(*map(type_of, arrays)) if len(arrays) > 1 else arrays[0].dtype
    target = np.dtype(dtype if dtype is not None else common if out is None else out.dtype)
    for array in arrays if target != common or casting != "same_kind" else ():
        if not np.can_cast(array.dtype, target, casting):
            raise TypeError(
                f"Cannot cast array data from {array.dtype} to {target} according to the rule "
                f"{casting!r}"
            )
    result = _concatenated([unchecked(a, target) for a in arrays], axis)
    if out is not None and out.shape != result.shape:
        raise ValueError(f"Output array is the wrong shape: {out.shape}, not {result.shape}")
    return stored(name, result, out)


def _concatenated(parts: list[Any], axis: int) -> Any:
    op = get("concatenate")
    while len(parts) > MOST_JOINED:
        starts = range(0, len(parts), MOST_JOINED)
        parts = [apply(op, *parts[start : start + MOST_JOINED], axis=axis) for start in starts]
    return apply(op, *parts, axis=axis)


@numpy_function
def concatenate(
    arrays: Any,
    /,
    axis: int | None = 0,
    out: Any = None,
    *,
    dtype: DTypeLike | None = None,
    casting: Casting = "same_kind",
) -> Any:
    """Arrays joined along an existing axis; with `axis=None`, ravelled first.

    Shape: that of the arrays, the extents of the axis added.
    Dtype: the common one of the arrays, or `dtype`.

    Raises:
        ValueError: other extents differ, an array has no axes, or `out` has another shape.
        AxisError: the axis is out of range.
        TypeError: a dtype does not convert by `casting`, or there are both `dtype` and `out`.

    >>> tnp.concatenate([[1, 2], [3.5]])
    array([1. , 2. , 3.5])
    """
    parts = _row_of(arrays)
    if axis is None:
        flat = [reshape(a, -1) for a in parts]
        return _joined("concatenate", flat, 0, out, dtype, casting)
    if any(a.ndim == 0 for a in parts):
        raise ValueError("zero-dimensional arrays cannot be concatenated; use stack")
    if any(a.ndim != parts[0].ndim for a in parts):
        raise ValueError(
            "concatenate: all the input arrays must have same number of dimensions, got "
            + ", ".join(str(a.shape) for a in parts)
        )
    axis = normalize_axis_index(axis, parts[0].ndim if parts else 1)
    return _joined("concatenate", parts, axis, out, dtype, casting)


concat = concatenate


@numpy_function
def stack(
    arrays: Any,
    axis: int = 0,
    out: Any = None,
    *,
    dtype: DTypeLike | None = None,
    casting: Casting = "same_kind",
) -> Any:
    """Arrays of one shape joined along a new axis.

    Shape: that of the arrays, with a new axis as long as there are arrays.
    Dtype: the common one of the arrays, or `dtype`.

    Raises:
        ValueError: the shapes differ, or `out` has another shape.
        AxisError: the axis is out of range.
        TypeError: a dtype does not convert by `casting`, or there are both `dtype` and `out`.

    >>> tnp.stack([[1, 2], [3, 4]], axis=1)
    array([[1, 3],
           [2, 4]])
    """
    parts = _row_of(arrays)
    if len({a.shape for a in parts}) > 1:
        listed = ", ".join(str(a.shape) for a in parts)
        raise ValueError(f"all input arrays must have the same shape, got {listed}")
    axis = normalize_axis_index(axis, parts[0].ndim + 1)
    return _joined("stack", [expand_dims(a, axis) for a in parts], axis, out, dtype, casting)


@numpy_function
def hstack(tup: Any, *, dtype: DTypeLike | None = None, casting: Casting = "same_kind") -> Any:
    """Arrays joined along the second axis, or the first if they have one.

    Shape: that of the arrays, the extents of one axis added.
    Dtype: the common one of the arrays, or `dtype`.

    Raises:
        ValueError: other extents differ, or there are no arrays.
        TypeError: a dtype does not convert by `casting`.

    >>> tnp.hstack([[1, 2], [3]])
    array([1, 2, 3])
    """
    parts = [atleast_1d(a) for a in tup]
    return concatenate(parts, 0 if parts[0].ndim == 1 else 1, dtype=dtype, casting=casting)


@numpy_function
def vstack(tup: Any, *, dtype: DTypeLike | None = None, casting: Casting = "same_kind") -> Any:
    """Arrays, or rows, joined along the first axis.

    Shape: (rows, …): vectors are rows of one matrix.
    Dtype: the common one of the arrays, or `dtype`.

    Raises:
        ValueError: other extents differ, or there are no arrays.
        TypeError: a dtype does not convert by `casting`.

    >>> tnp.vstack([[1, 2], [3, 4]])
    array([[1, 2],
           [3, 4]])
    """
    return concatenate([atleast_2d(a) for a in tup], 0, dtype=dtype, casting=casting)


@numpy_function
def dstack(tup: Any) -> Any:
    """Arrays joined along the third axis.

    Shape: three axes or more, the extents of the third added.
    Dtype: the common one of the arrays.

    Raises:
        ValueError: other extents differ, or there are no arrays.

    >>> tnp.dstack([[1, 2], [3, 4]])
    array([[[1, 3],
            [2, 4]]])
    """
    return concatenate([atleast_3d(a) for a in tup], 2)


@numpy_function
def column_stack(tup: Any) -> Any:
    """Columns, or arrays of two axes, joined along the second axis.

    Shape: (rows, columns).
    Dtype: the common one of the arrays.

    Raises:
        ValueError: the numbers of rows differ, or there are no arrays.

    >>> tnp.column_stack([[1, 2], [3, 4]])
    array([[1, 3],
           [2, 4]])
    """
    parts = _row_of(tup)
    return concatenate([a if a.ndim > 1 else reshape(a, (-1, 1)) for a in parts], 1)


@numpy_function
def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """Two arrays joined, ravelled if no axis is given.

    Shape: that of `arr` with a longer axis; one axis without `axis`.
    Dtype: the common one of the arrays.

    Raises:
        AxisError: the axis is out of range.
        ValueError: other extents differ.

    >>> tnp.append([1, 2], 3)
    array([1, 2, 3])
    """
    return concatenate((arr, values), axis)


def surrounded(array: Any, widths: Sequence[tuple[int, int]], value: Any = 0) -> Any:
    """The array with elements of one value before and after each axis."""
    low, high = (tuple(pair[k] for pair in widths) for k in (0, 1))
    value = lifted(unchecked(value, array.dtype))
    return apply(get("pad"), array, value, low=low, high=high)


@numpy_function
def meshgrid(
    *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Any, ...]:
    """Coordinate arrays of a grid from its coordinate vectors.

    `indexing` is "xy" (the first two axes swapped) or "ij".

    Shape: an array for each vector, of the grid; with `sparse`, 1 along the other vectors' axes.
    Dtype: those of the vectors.

    Raises:
        ValueError: `indexing` is unknown.

    >>> tnp.meshgrid([1, 2], [3, 4], indexing='ij')
    (array([[1, 1],
           [2, 2]]), array([[3, 4],
           [3, 4]]))
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f'indexing must be "xy" or "ij", got {indexing!r}')
    rank = len(xi)
    flat = [reshape(x, (*(1,) * k, -1, *(1,) * (rank - k - 1))) for k, x in enumerate(xi)]
    if indexing == "xy" and rank > 1:
        flat = [moveaxis(x, 0, 1) for x in flat]
    if sparse:
        return tuple(copied(x) if copy else x for x in flat)
    grid = np.broadcast_shapes(*(x.shape for x in flat))
    return tuple(copied(broadcast_to(x, grid)) if copy else broadcast_to(x, grid) for x in flat)
