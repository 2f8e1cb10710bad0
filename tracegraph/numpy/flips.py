"""Functions that move elements along axes: flips and rotations, which are views, and roll."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.numpy.axes import swapaxes
from tracegraph.numpy.dispatch import as_array, numpy_function
from tracegraph.numpy.shapes import Shape, reshape

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
def roll(a: Any, shift: Shape, axis: Shape | None = None) -> Any:
    """Elements moved by `shift` along axes, cyclically; without an axis, of the ravelled array.

    Shape: that of `a`.
    Dtype: that of `a`.

    Raises:
        AxisError: an axis is out of range.
        ValueError: `shift` and `axis` do not broadcast.

    >>> tnp.roll([1, 2, 3], 1)
    array([3, 1, 2])
    """
    a = as_array(a)
    if axis is None:
        flat = reshape(a, (a.size,))
        total = shift if type(shift) is int else int(np.sum(shift))
        return apply(_RESHAPE, apply(get("roll"), flat, shifts=(total,), axes=(0,)), shape=a.shape)
    pairs = np.broadcast(shift, normalize_axis_tuple(axis, a.ndim, allow_duplicate=True))
    shifts: dict[int, int] = {}
    for by, along in pairs:
        shifts[int(along)] = shifts.get(int(along), 0) + int(by)
    along_axes = tuple(sorted(shifts))
    return apply(get("roll"), a, shifts=tuple(shifts[k] for k in along_axes), axes=along_axes)
