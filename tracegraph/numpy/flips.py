"""Functions that move elements along axes: flips and rotations, which are views, and roll."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.ir.types import broadcast_shapes
from tracegraph.numpy.axes import swapaxes
from tracegraph.numpy.creation import iota
from tracegraph.numpy.dispatching.dispatch import as_array, numpy_function
from tracegraph.numpy.dispatching.statics import tracers_in
from tracegraph.numpy.selecting import take
from tracegraph.numpy.shapes import Shape, atleast_1d, reshape
from tracegraph.numpy.ufuncs import remainder, subtract

__all__ = ["flip", "fliplr", "flipud", "roll", "rot90"]

_RESHAPE, _SLICE = map(get, ("reshape", "slice"))


@numpy_function
def flip(m: Any, axis: Shape | None = None) -> Any:
    """Axes reversed: all of them, or those given.

    Shape: that of `m`.
    Dtype: that of `m`.

    Raises:
        AxisError: an axis is out of range.

    >>> tnp.flip([[1, 2], [3, 4]], 1)
    array([[2, 1],
           [4, 3]])
    """
    m = as_array(m)
    chosen = range(m.ndim) if axis is None else normalize_axis_tuple(axis, m.ndim)
    starts = tuple(max(n - 1, 0) if k in chosen else 0 for k, n in enumerate(m.shape))
    steps = tuple(-1 if k in chosen else 1 for k in range(m.ndim))
    return apply(_SLICE, m, starts=starts, steps=steps, sizes=m.shape)


@numpy_function
def fliplr(m: Any) -> Any:
    """The second axis reversed.

    Shape: that of `m`.
    Dtype: that of `m`.

    Raises:
        AxisError: there are fewer than two axes.

    >>> tnp.fliplr([[1, 2], [3, 4]])
    array([[2, 1],
           [4, 3]])
    """
    return flip(m, 1)


@numpy_function
def flipud(m: Any) -> Any:
    """The first axis reversed.

    Shape: that of `m`.
    Dtype: that of `m`.

    Raises:
        AxisError: there are no axes.

    >>> tnp.flipud([[1, 2], [3, 4]])
    array([[3, 4],
           [1, 2]])
    """
    return flip(m, 0)


@numpy_function
def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Any:
    """A rotation by k quarter turns in the plane of two axes, from the first to the second.

    Shape: that of `m`, the two extents swapped for odd `k`.
    Dtype: that of `m`.

    Raises:
        AxisError: an axis is out of range.
        ValueError: the axes are the same.

    >>> tnp.rot90([[1, 2], [3, 4]])
    array([[2, 4],
           [1, 3]])
    """
    m = as_array(m)
    first, second = normalize_axis_tuple(axes, m.ndim)
    match k % 4:
        case 0:
            return m[...]
        case 1:
            return swapaxes(flip(m, second), first, second)
        case 2:
            return flip(m, (first, second))
        case _:
            return flip(swapaxes(m, first, second), second)


@numpy_function
def roll(a: Any, shift: Any, axis: Shape | None = None) -> Any:
    """Elements moved by `shift` along axes, cyclically; without an axis, of the ravelled array.

    The shift may be traced.

    Shape: that of `a`.
    Dtype: that of `a`.

    Raises:
        AxisError: an axis is out of range.
        ValueError: `shift` and `axis` do not broadcast.

    >>> tnp.roll([1, 2, 3], 1)
    array([3, 1, 2])
    """
    a = as_array(a)
    if next(tracers_in(shift), None) is not None:
        return _rolled(a, shift, axis)
    if axis is None:
        flat = reshape(a, (a.size,))
        total = shift if type(shift) is int else int(np.sum(shift))
        total %= max(a.size, 1)
        return apply(_RESHAPE, apply(get("roll"), flat, shifts=(total,), axes=(0,)), shape=a.shape)
    pairs = np.broadcast(shift, normalize_axis_tuple(axis, a.ndim, allow_duplicate=True))
    shifts: dict[int, int] = {}
    for by, along in pairs:
        shifts[int(along)] = (shifts.get(int(along), 0) + int(by)) % max(a.shape[along], 1)
    along_axes = tuple(sorted(shifts))
    return apply(get("roll"), a, shifts=tuple(shifts[k] for k in along_axes), axes=along_axes)


def _rolled(a: Any, shift: Any, axis: Shape | None) -> Any:
    """`roll` by shifts that are not known while tracing: elements at traced positions."""
    if axis is None:
        return reshape(_rolled(reshape(a, (a.size,)), shift, 0), a.shape)
    shifts = shift if isinstance(shift, (list, tuple)) else atleast_1d(shift)
    axes = normalize_axis_tuple(axis, a.ndim, allow_duplicate=True)
    (count,) = broadcast_shapes((len(shifts),), (len(axes),))
    for k in range(count):
        a = _at_shifted(a, as_array(shifts[k % len(shifts)]), axes[k % len(axes)])
    return a


def _at_shifted(a: Any, shift: Any, axis: int) -> Any:
    extent = a.shape[axis]
    if not extent:
        return a
    wide = shift if shift.dtype == np.uint64 else as_array(shift, np.int64)
    by = as_array(remainder(wide, wide.dtype.type(extent)), np.int64)
    return take(a, remainder(subtract(iota(extent, np.int64), by), extent), axis=axis)
