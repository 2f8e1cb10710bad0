"""Functions that select elements, at indices or by diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index
from numpy.typing import DTypeLike

from tracegraph.arrays.array import Array
from tracegraph.arrays.array_views import is_in_host_memory, read_only_view
from tracegraph.arrays.eager import apply_view
from tracegraph.ir.op import get
from tracegraph.numpy.axes import moveaxis
from tracegraph.numpy.dispatching.dispatch import as_array, laid_out, lifted, numpy_function
from tracegraph.numpy.dispatching.output import require_safe, stored
from tracegraph.numpy.elementwise import where
from tracegraph.numpy.generated import diagonals, eye, nearest_diagonal, tri
from tracegraph.numpy.index_modes import integer_indices, limited, require_integers
from tracegraph.numpy.joining import surrounded
from tracegraph.numpy.reductions import sum
from tracegraph.numpy.shapes import is_view, reshape, with_axis
from tracegraph.numpy.ufuncs import less
from tracegraph.tracing import views

__all__ = ["diag", "diagflat", "diagonal", "take", "take_along_axis", "trace", "tril", "triu"]


@numpy_function
def take(
    a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise"
) -> Any:
    """Elements at indices along an axis, or of the ravelled array.

    Static indices must be in range. Traced ones count from the end if negative and are clamped;
    with mode "wrap" they are taken modulo the extent, with "clip" negative ones are clamped to 0.

    Shape: that of `indices`, in place of the axis.
    Dtype: that of `a`.

    Raises:
        AxisError: the axis is out of range.
        IndexError: a static index is out of range.
        TypeError: the indices are an array of another dtype than integers or booleans.
        ValueError: the mode is unknown.

    >>> tnp.take([5, 6, 7], [2, 0])
    array([7, 5])
    """
    a, indices = lifted(as_array(a)), integer_indices(indices)
    a, axis = with_axis(a, axis)
    indices = limited(indices, a.shape[axis], mode)
    result = a[(*(slice(None),) * axis, indices)]
    require_safe("take", a, out)
    return stored("take", laid_out(result, None), out, "unsafe")


@numpy_function
def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Any:
    """Elements at indices along an axis, for each position of the other axes.

    Shape: that of `indices`, the other axes broadcast.
    Dtype: that of `arr`.

    Raises:
        ValueError: `indices` has another number of axes.
        AxisError: the axis is out of range.
        IndexError: a static index is out of range, or they are not integers.

    >>> tnp.take_along_axis(np.array([[5, 6], [7, 8]]), np.array([[1], [0]]), axis=1)
    array([[6],
           [7]])
    """
    arr, indices = lifted(as_array(arr)), as_array(indices)
    require_integers(indices)
    if axis is None:
        arr, axis = reshape(arr, -1), 0
    if indices.ndim != arr.ndim:
        raise ValueError(
            f"indices of shape {indices.shape} and arr of shape {arr.shape} must have the same "
            "number of dimensions"
        )
    axis = normalize_axis_index(axis, arr.ndim)
    mesh = list(np.ogrid[tuple(slice(n) for n in arr.shape)])
    return arr[tuple(indices if k == axis else along for k, along in enumerate(mesh))]


@numpy_function
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Diagonals of the matrices in two axes, along a new last axis; a read-only view.

    Shape: that of `a` without the two axes, then the diagonal's length.
    Dtype: that of `a`.

    Raises:
        AxisError: an axis is out of range.
        ValueError: there are fewer than two axes.

    >>> tnp.diagonal([[1, 2], [3, 4]])
    array([1, 4])
    """
    found = writable_diagonal(as_array(a), offset, axis1, axis2)
    return read_only_view(found, "a diagonal, which is read-only")


def writable_diagonal(a: Any, offset: int, axis1: int, axis2: int) -> Any:
    """The same as `diagonal`, but a view that may be written through, as einsum's is."""
    if a.ndim < 2:
        raise ValueError(f"diagonal needs at least two axes, got shape {a.shape}")
    if is_in_host_memory(a):
        view = np.diagonal(a.data, offset, axis1, axis2)
        view.setflags(write=a.data.flags.writeable)
        return Array.sharing(view)
    source = a
    a = moveaxis(a, (axis1, axis2), (-2, -1))
    rows, columns = a.shape[-2:]
    row, column = (0, offset) if offset >= 0 else (-offset, 0)
    count = max(min(rows - row, columns - column), 0)
    flat = reshape(a, (*a.shape[:-2], rows * columns))
    if not is_view(flat, a):  # the axes are not one: two indices
        return _gathered_diagonal(source, (axis1, row), (axis2, column), count=count)
    start = row * columns + column if count else 0
    stop = start + (count - 1) * (columns + 1) + 1 if count else 0
    return flat[..., start : stop : columns + 1]


def _gathered_diagonal(a: Any, *axes_and_starts: tuple[int, int], count: int) -> Any:
    """A view of a diagonal along two axes, from a start on each."""
    starts = {normalize_axis_index(axis, a.ndim): start for axis, start in axes_and_starts}
    dims = tuple(sorted(starts))
    indices = [lifted(starts[axis] + np.arange(count)) for axis in dims]
    strides = views.strides_of(a)
    rest = (stride for axis, stride in enumerate(strides) if axis not in dims)
    along = (strides[dims[0]] + strides[dims[1]], *rest)
    found = apply_view(get("gather"), a, *indices, strides=along, dims=dims)
    return moveaxis(found, 0, -1)


@numpy_function
def trace(
    a: Any,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: Any = None,
) -> Any:
    """Sums of diagonals, with the dtypes of `sum`.

    Shape: that of `a` without the two axes.
    Dtype: 64-bit integers for bools and integers, else that of `a`; or `dtype`.

    Raises:
        AxisError: an axis is out of range.
        ValueError: there are fewer than two axes.

    >>> tnp.trace([[[1, 2], [3, 4]]], axis1=1, axis2=2)
    array([5])
    """
    return sum(diagonal(a, offset, axis1, axis2), -1, dtype, out)


@numpy_function
def diag(v: Any, k: int = 0) -> Any:
    """The k-th diagonal of a matrix, or a matrix with a vector on its k-th diagonal.

    Shape: one axis of a matrix; (n + |k|, n + |k|) of n elements.
    Dtype: that of `v`.

    Raises:
        ValueError: there are neither one nor two axes.

    >>> tnp.diag([1, 2])
    array([[1, 0],
           [0, 2]])
    """
    v = as_array(v)
    if v.ndim == 2:
        return diagonal(v, k)
    if v.ndim != 1:
        raise ValueError(f"diag takes a vector or a matrix, got shape {v.shape}")
    extent = v.size + abs(k)
    column = reshape(surrounded(v, [(max(-k, 0), max(k, 0))]), (extent, 1))
    return where(eye(extent, k=k, dtype=bool), column, v.dtype.type(0))


@numpy_function
def diagflat(v: Any, k: int = 0) -> Any:
    """A matrix with the ravelled elements on its k-th diagonal.

    Shape: (n + |k|, n + |k|) of n elements.
    Dtype: that of `v`.

    >>> tnp.diagflat([[1, 2]])
    array([[1, 0],
           [0, 2]])
    """
    return diag(reshape(v, -1), k)


@numpy_function
def tril(m: Any, k: int = 0) -> Any:
    """The lower triangle of matrices, or of rows of one vector: zeros above the k-th diagonal.

    Shape: that of `m`; (n, n) of a vector.
    Dtype: that of `m`.

    Raises:
        TypeError: there are no axes.

    >>> tnp.tril([[1, 2], [3, 4]])
    array([[1, 0],
           [3, 4]])
    """
    m = as_array(m)
    return where(tri(*_triangle(m), k, bool), m, m.dtype.type(0))


@numpy_function
def triu(m: Any, k: int = 0) -> Any:
    """The upper triangle of matrices, or of rows of one vector: zeros below the k-th diagonal.

    Shape: that of `m`; (n, n) of a vector.
    Dtype: that of `m`.

    Raises:
        TypeError: there are no axes.

    >>> tnp.triu([[1, 2], [3, 4]])
    array([[1, 2],
           [0, 4]])
    """
    m = as_array(m)
    rows, columns = _triangle(m)
    below = less(diagonals(rows, columns), nearest_diagonal(k, rows, columns))
    return where(below, m.dtype.type(0), m)


def _triangle(m: Any) -> tuple[int, int]:
    """The extents of a triangle's mask; a vector is broadcast to a square of equal rows."""
    if m.ndim == 0:
        raise TypeError("a triangle needs at least one axis, got a scalar")
    return (m.shape[-2], m.shape[-1]) if m.ndim != 1 else (m.size, m.size)
