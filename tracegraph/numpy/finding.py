"""Functions that find true elements, and functions that keep those at which a condition holds.

How many there are depends on the elements, so while tracing a static `size` says how many the
result has room for, as in JAX. The k-th true element is found as a scatter of positions: its place
is the running count of true elements before it.
"""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from tracegraph.arrays.array import Array
from tracegraph.arrays.creation import asarray
from tracegraph.arrays.eager import apply, as_numpy
from tracegraph.errors import ShapeDependentError
from tracegraph.ir.op import get
from tracegraph.numpy.creation import full, iota
from tracegraph.numpy.dispatching.dispatch import CAST, as_array, laid_out, lifted, sized_function
from tracegraph.numpy.dispatching.output import require_safe, stored
from tracegraph.numpy.shapes import broadcast_to, reshape, with_axis
from tracegraph.numpy.ufuncs import floor_divide, less, not_equal, remainder, subtract
from tracegraph.tracing.tracer import Tracer

__all__ = ["argwhere", "compress", "extract", "flatnonzero", "nonzero"]

_WHERE, _COUNT, _SUM, _SCATTER, _CONCATENATE = map(
    get, ("where", "cumsum", "sum", "scatter_add", "concatenate")
)


@sized_function
def nonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> tuple[Any, ...]:
    """The indices of elements that are not zero, in row-major order: an array for each axis.

    While tracing, `size` is needed: the first `size` indices, and after them `fill_value`, which
    is 0 by default, or a tuple of one for each axis.

    Shape: one axis of each array.
    Dtype: int64.

    Raises:
        ShapeDependentError: `a` is traced, and there is no `size`.
        ValueError: `a` has no axes, or `size` is negative.

    >>> tnp.nonzero(np.array([[3, 0], [0, 4]]))
    (array([0, 1]), array([0, 1]))
    >>> tnp.nonzero(np.array([0, 5, 6]), size=4, fill_value=-1)
    (array([ 1,  2, -1, -1]),)
    """
    return positions_where("nonzero", as_array(a), size, fill_value)


def positions_where(name: str, a: Any, size: int | None, fill: Any) -> tuple[Any, ...]:
    """What `nonzero` gives, for the function of this name, which messages show."""
    if a.ndim == 0:
        raise ValueError(
            f"numpy.{name} needs an array with axes, got a scalar; use numpy.atleast_1d(x)"
        )
    flat, found = _true_positions(name, a, size)
    fills = fill if isinstance(fill, tuple) else (fill,) * a.ndim
    if len(fills) != a.ndim:
        raise ValueError(f"fill_value needs one value for each of the {a.ndim} axes, got {fill}")
    results = []
    stride = a.size
    for extent, value in zip(a.shape, fills, strict=True):
        stride //= max(extent, 1)
        # the last axis needs no remainder, the first no division; neither has an empty array
        along = floor_divide(flat, stride) if stride > 1 else flat
        along = remainder(along, extent) if 0 < extent < a.size // max(stride, 1) else along
        results.append(_filled(along, found, value))
    return tuple(results)


@sized_function
def flatnonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The positions in the ravelled array of elements that are not zero.

    While tracing, `size` is needed: the first `size` positions, and after them `fill_value`,
    which is 0 by default.

    Shape: one axis.
    Dtype: int64.

    Raises:
        ShapeDependentError: `a` is traced, and there is no `size`.
        ValueError: `size` is negative.

    >>> tnp.flatnonzero([[3, 0], [0, 4]])
    array([0, 3])
    """
    flat, found = _true_positions("flatnonzero", as_array(a), size)
    return _filled(flat, found, fill_value)


@sized_function
def argwhere(a: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The indices of elements that are not zero, a row for each, in row-major order.

    While tracing, `size` is needed: `size` rows, the last of them `fill_value`, 0 by default.

    Shape: (elements, axes).
    Dtype: int64.

    Raises:
        ShapeDependentError: `a` is traced, and there is no `size`.
        ValueError: `size` is negative.

    >>> tnp.argwhere(np.array([[3, 0], [0, 4]]))
    array([[0, 0],
           [1, 1]])
    """
    a = as_array(a)
    if a.ndim == 0:
        rows, _ = _true_positions("argwhere", a, size)
        return reshape(rows, (rows.size, 1))[:, :0]
    columns = positions_where("argwhere", a, size, fill_value)
    rows = apply(_CONCATENATE, *(reshape(c, (c.size, 1)) for c in columns), axis=1)
    return laid_out(rows, (1, 0) if a.ndim > 1 else None)


@sized_function
def compress(
    condition: Any,
    a: Any,
    axis: int | None = None,
    out: Any = None,
    *,
    size: int | None = None,
    fill_value: Any = 0,
) -> Any:
    """Slices along an axis, or elements of the ravelled array, at which a condition holds.

    While the condition is traced, `size` is needed: the first `size` slices, and after them
    `fill_value`. A traced condition beyond the end of the axis is ignored.

    Shape: that of `a`, the axis as long as there are true elements; or `size`.
    Dtype: that of `a`.

    Raises:
        ShapeDependentError: the condition is traced, and there is no `size`.
        AxisError: the axis is out of range.
        IndexError: a static condition holds beyond the end of the axis.
        ValueError: the condition has more than one axis, or `size` is negative.

    >>> tnp.compress([True, False, True], [5, 6, 7])
    array([5, 7])
    >>> tnp.compress([True, False, True], np.array([5, 6, 7]), size=3)
    array([5, 7, 0])
    """
    condition, a = as_array(condition), as_array(a)
    if condition.ndim != 1:
        raise ValueError(f"condition must be a 1-d array, got shape {condition.shape}")
    result = _kept("compress", condition, a, axis, size, fill_value)
    require_safe("compress", a, out)
    return stored("compress", result, out, "unsafe")


@sized_function
def extract(condition: Any, arr: Any, *, size: int | None = None, fill_value: Any = 0) -> Any:
    """The elements at which a condition is not zero, in row-major order: `arr[condition]`.

    While the condition is traced, `size` is needed: the first `size` elements, and after them
    `fill_value`.

    Shape: one axis.
    Dtype: that of `arr`.

    Raises:
        ShapeDependentError: the condition is traced, and there is no `size`.
        IndexError: a static condition holds beyond the end of the array.
        ValueError: `size` is negative.

    >>> tnp.extract([[True, False], [False, True]], [[5, 6], [7, 8]])
    array([5, 8])
    """
    condition = as_array(condition)
    flat = reshape(condition, (condition.size,))
    return _kept("extract", flat, as_array(arr), None, size, fill_value)


def _kept(name: str, condition: Any, a: Any, axis: int | None, size: int | None, fill: Any) -> Any:
    """The slices of `a` at which a flat condition holds."""
    a, axis = with_axis(a, axis)
    extent = a.shape[axis]
    if isinstance(condition, Tracer) and condition.size > extent:
        condition = condition[:extent]
    positions, found = _true_positions(name, condition, size)
    shape = (*a.shape[:axis], positions.size, *a.shape[axis + 1 :])
    if size is not None and extent == 0:
        return broadcast_to(lifted(as_array(fill, a.dtype)), shape)
    if size is None and isinstance(a, Tracer):
        positions = as_numpy(positions)  # static: checked against the extent
    taken = lifted(a)[(*(slice(None),) * axis, positions)]
    if size is None:
        return laid_out(taken, None)
    beyond = (-1,) + (1,) * (a.ndim - axis - 1)
    return apply(_WHERE, reshape(found, beyond), taken, as_array(fill, a.dtype))


def _true_positions(name: str, a: Any, size: int | None) -> tuple[Any, Any]:
    """Positions of elements that are not zero, and the mask of those that are not padding.

    Without a size, there is no padding.
    """
    if size is None:
        if isinstance(a, Tracer):
            arguments = "condition, x" if name in ("compress", "extract") else "x"
            call = f"tracegraph.numpy.{name}({arguments}, size=n)"
            one = " with one argument" if name == "where" else ""
            raise ShapeDependentError(a, f"numpy.{name}{one}", call)
        positions: Any = np.flatnonzero(np.asarray(a))
        if type(a) is Array:
            positions = asarray(positions, device=a.device).local()
        return positions, None
    size = index(size)
    if size < 0:
        raise ValueError(f"size must not be negative, got {size}")
    mask = reshape(a, (a.size,))
    if mask.dtype != np.bool_:
        mask = not_equal(mask, mask.dtype.type(0))
    counted = apply(CAST, mask, dtype=np.dtype(np.int64))
    places = apply(_WHERE, mask, subtract(apply(_COUNT, counted, axis=0), 1), np.int64(size))
    # each place is written once, and those from `size` on are dropped
    spread = {"dims": (0,), "starts": (), "steps": ()}
    positions = apply(_SCATTER, full(size, np.int64(0)), iota(a.size, np.int64), places, **spread)
    return positions, less(iota(size, np.int64), apply(_SUM, counted, axes=(0,)))


def _filled(positions: Any, found: Any, value: Any) -> Any:
    """Positions, with another value than 0 as padding; without padding, as they are."""
    if found is None or value is None or (type(value) is int and value == 0):
        return positions
    return apply(_WHERE, found, positions, as_array(value, np.int64))
