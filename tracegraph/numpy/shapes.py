"""Functions that change the shape, not the order of elements: reshape, broadcasting, new axes.

Where NumPy returns a view, these functions do as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from tracegraph.arrays.array import Array
from tracegraph.arrays.array_views import is_in_host_memory
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.ir.types import broadcast_shapes
from tracegraph.numpy.dispatching.dispatch import as_array, copied, numpy_function
from tracegraph.tracing.layouts import reading_order
from tracegraph.tracing.views import has_layout, is_column_major, is_row_major, order_of

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "expand_dims", "ravel", "reshape",
    "squeeze",
]  # fmt: skip

_RESHAPE, _TRANSPOSE, _BROADCAST = map(get, ("reshape", "transpose", "broadcast_to"))

Shape = int | Sequence[int]


def extents_of(shape: Shape) -> tuple[int, ...]:
    """A shape as a tuple.

    Raises:
        TracerIndexError: an extent is traced.
    """
    if isinstance(shape, (tuple, Sequence, np.ndarray)):  # tuple first: the common case, and faster
        return tuple(map(index, shape))
    return (index(shape),)


def is_in_columns(a: Any, order: str) -> bool:
    """Whether an order, as `order_of` gives it, is column-major for this array."""
    if order != "A":
        return order == "F"
    if is_in_host_memory(a):
        flags = a.data.flags
        return bool(flags.f_contiguous and not flags.c_contiguous)
    return has_layout(a) and is_column_major(a)


def _reversed(a: Any) -> Any:
    return apply(_TRANSPOSE, a, axes=tuple(range(a.ndim))[::-1]) if a.ndim > 1 else a


@numpy_function
def reshape(a: Any, /, shape: Shape, order: str = "C", *, copy: bool | None = None) -> Any:
    """The same elements, in row-major order, under another shape; one extent may be -1.

    With `order="F"`, elements are read and placed in column-major order; with `order="A"`, they are
    if the array is column-major: a transposed view of a traced array, which is row-major.

    Shape: `shape`; -1 is what is left.
    Dtype: that of `a`.

    Raises:
        ValueError: the number of elements differs; `order` is "K"; or `copy` is false, and the
            elements are not next to each other.
        TracerIndexError: an extent is traced.

    >>> tnp.reshape([1, 2, 3, 4], (2, -1))
    array([[1, 2],
           [3, 4]])
    """
    order = order_of(order)
    if order == "K":
        raise ValueError("order 'K' is not permitted for reshaping")
    a = as_array(a)
    if is_in_columns(a, order):
        return _reversed(reshape(_reversed(a), extents_of(shape)[::-1], copy=copy))
    if type(shape) is tuple and shape == a.shape:
        return copied(a) if copy else a
    known = list(extents_of(shape))
    if known.count(-1) == 1:
        rest = prod(n for n in known if n != -1)
        if rest > 0 and a.size % rest == 0:
            known[known.index(-1)] = a.size // rest
    if min(known, default=0) < 0 or prod(known) != a.size:
        raise ValueError(f"cannot reshape array of shape {a.shape} into shape {shape}")
    result = a if tuple(known) == a.shape else apply(_RESHAPE, a, shape=tuple(known))
    if copy is False and result is not a and not is_view(result, a):
        raise ValueError("Unable to avoid creating a copy while creating an array as requested.")
    return copied(result) if copy else result


def is_view(result: Any, a: Any) -> bool:
    """Whether what `reshape` gives shares memory, as far as that is known."""
    if is_in_host_memory(result):
        return np.may_share_memory(result.data, a.data)
    return not has_layout(result) or result.alias is not None or not result.is_local


@numpy_function
def ravel(a: Any, order: str = "C") -> Any:
    """The elements in one axis: a view of a row-major array, else a copy.

    With `order="F"`, they are in column-major order; with `order="A"`, they are if the array is
    column-major: a transposed view of a traced array, which is row-major. With `order="K"`, they
    are in the order of memory.

    Shape: one axis.
    Dtype: that of `a`.

    Raises:
        ValueError: `order` is something else.

    >>> tnp.ravel([[1, 2], [3, 4]])
    array([1, 2, 3, 4])
    """
    order, a = order_of(order), as_array(a)
    if is_in_host_memory(a):
        return Array.sharing(a.data.ravel(order))
    if order == "K" and has_layout(a):
        axes = reading_order(a)
        a = a if axes == tuple(range(a.ndim)) else apply(_TRANSPOSE, a, axes=axes)
    elif is_in_columns(a, order):
        a = _reversed(a)
    result = reshape(a, (a.size,))
    return copied(result) if has_layout(a) and not is_row_major(a) else result


@numpy_function
def broadcast_to(array: Any, shape: Shape, subok: bool = False) -> Any:
    """What `broadcasting.broadcast_to` gives; but the array itself, if it has that shape.

    Raises:
        ValueError: the shape does not broadcast to the other.
        TracerIndexError: an extent is traced.
    """
    array = as_array(array)
    target = extents_of(shape)
    if broadcast_shapes(array.shape, target) != target:
        raise ValueError(f"shape {array.shape} does not broadcast to {target}")
    return apply(_BROADCAST, array, shape=target) if array.shape != target else array


def with_axis(a: Any, axis: int | None) -> tuple[Any, int]:
    """An array and the axis of a function along one: without one, the ravelled array.

    A 0-d array is taken as one of a single element then, as many of NumPy's functions have it.

    Raises:
        AxisError: the axis is out of range.
    """
    if axis is None or (a.ndim == 0 and axis in (0, -1)):
        return reshape(a, (-1,)), 0
    return a, normalize_axis_index(axis, a.ndim)


@numpy_function
def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Any, ...]:
    """Arrays broadcast to their common shape.

    Shape: the common one, of each result.
    Dtype: those of the arrays.

    Raises:
        ValueError: the shapes do not broadcast.

    >>> tnp.broadcast_arrays([1, 2], 3)
    (array([1, 2]), array([3, 3]))
    """
    arrays = [as_array(a) for a in args]
    common = broadcast_shapes(*(a.shape for a in arrays))
    return tuple(broadcast_to(a, common) for a in arrays)


@numpy_function
def expand_dims(a: Any, axis: Shape = 0) -> Any:
    """New axes of extent 1, at these positions of the result.

    That an axis need not be given is from the array API standard; NumPy arrays need one.

    Shape: that of `a` with new extents of 1.
    Dtype: that of `a`.

    Raises:
        AxisError: an axis is out of range.

    >>> tnp.expand_dims([1, 2], 0)
    array([[1, 2]])
    """
    a = as_array(a)
    count = len(axis) if isinstance(axis, (list, tuple)) else 1
    new = normalize_axis_tuple(axis, a.ndim + count)
    extents = iter(a.shape)
    return reshape(a, tuple(1 if k in new else next(extents) for k in range(a.ndim + count)))


@numpy_function
def squeeze(a: Any, axis: Shape | None = None) -> Any:
    """Axes of extent 1 removed: all of them, or those given.

    Shape: that of `a` without these axes.
    Dtype: that of `a`.

    Raises:
        AxisError: an axis is out of range.
        ValueError: an extent is not 1.

    >>> tnp.squeeze([[1, 2]])
    array([1, 2])
    """
    a = as_array(a)
    chosen = (
        tuple(k for k, n in enumerate(a.shape) if n == 1)
        if axis is None or (a.ndim == 0 and axis in (0, -1))
        else normalize_axis_tuple(axis, a.ndim)
    )
    if any(a.shape[k] != 1 for k in chosen):
        raise ValueError(f"cannot squeeze axis {axis} of shape {a.shape}: its extent is not 1")
    return reshape(a, tuple(n for k, n in enumerate(a.shape) if k not in chosen))


@numpy_function
def atleast_1d(*arys: Any) -> Any:
    """Arrays with at least one axis.

    Shape: that of each array; (1,) of a scalar.
    Dtype: those of the arrays.

    >>> tnp.atleast_1d(5)
    array([5])
    """
    return _one_or_all([a if a.ndim else reshape(a, (1,)) for a in map(as_array, arys)])


@numpy_function
def atleast_2d(*arys: Any) -> Any:
    """Arrays with at least two axes, new ones in front.

    Shape: that of each array; (1, n) of a vector.
    Dtype: those of the arrays.

    >>> tnp.atleast_2d([1, 2])
    array([[1, 2]])
    """
    return _one_or_all([a if a.ndim >= 2 else reshape(a, (1, a.size)) for a in map(as_array, arys)])


@numpy_function
def atleast_3d(*arys: Any) -> Any:
    """Arrays with at least three axes.

    Shape: that of each array; (m, n, 1) of a matrix, (1, n, 1) of a vector.
    Dtype: those of the arrays.

    >>> tnp.atleast_3d([1, 2])
    array([[[1],
            [2]]])
    """

    def raised(a: Any) -> Any:
        if a.ndim >= 3:
            return a
        extents = (1, a.size, 1) if a.ndim < 2 else (*a.shape, 1)
        return reshape(a, extents)

    return _one_or_all([raised(as_array(a)) for a in arys])


def _one_or_all(arrays: list[Any]) -> Any:
    return arrays[0] if len(arrays) == 1 else tuple(arrays)
