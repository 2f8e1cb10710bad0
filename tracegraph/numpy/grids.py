"""Indices of a grid: positions to coordinates and back, open meshes, and `r_` and `c_`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tracegraph.errors import ShapeDependentError, UnsupportedByTracerError
from tracegraph.ir.types import broadcast_shapes, result_type, type_of
from tracegraph.numpy.axes import transpose
from tracegraph.numpy.dispatching.dispatch import (
    as_array,
    is_ours,
    is_python_number,
    numpy_function,
)
from tracegraph.numpy.generated import arange, linspace
from tracegraph.numpy.index_modes import checked
from tracegraph.numpy.joining import concatenate
from tracegraph.numpy.shapes import Shape, extents_of, reshape
from tracegraph.numpy.ufuncs import add, floor_divide, multiply, remainder
from tracegraph.tracing.tracer import Tracer

__all__ = ["c_", "ix_", "r_", "ravel_multi_index", "unravel_index"]


@numpy_function
def unravel_index(indices: Any, shape: Shape, order: str = "C") -> tuple[Any, ...]:
    """The coordinates, in an array of a static shape, of positions in the ravelled array.

    Static positions must be in range. Traced ones are limited to it.

    Shape: an array for each axis, of the shape of `indices`.
    Dtype: int64.

    Raises:
        TypeError: `indices` does not hold integers.
        ValueError: a static position is out of range, `order` is unknown, there are several indices
            of an array of no axes, or the shape is too large.

    >>> tnp.unravel_index(np.array([1, 5]), (2, 3))
    (array([0, 1]), array([1, 2]))
    """
    extents = extents_of(shape)
    require_size(extents)
    indices = _integers("unravel_index", indices)
    if not extents and indices.ndim:
        raise ValueError("multiple indices are not supported for 0d arrays")
    if indices.size and 0 in extents:
        raise ValueError(f"an array of shape {extents} has no elements to give indices of")
    rest = checked(indices, prod(extents), "raise", "indices")
    axes = _fastest_first(len(extents), order)
    found: dict[int, Any] = {}
    for axis in axes[:-1]:
        found[axis] = remainder(rest, max(extents[axis], 1))
        rest = floor_divide(rest, max(extents[axis], 1))
    for axis in axes[-1:]:
        found[axis] = rest
    return tuple(found[axis] for axis in range(len(extents)))


@numpy_function
def ravel_multi_index(
    multi_index: Any, dims: Shape, mode: str | Sequence[str] = "raise", order: str = "C"
) -> Any:
    """Positions in the ravelled array of coordinates in an array of a static shape.

    `mode` is one for all axes, or one for each: static coordinates must be in range for "raise",
    traced ones are limited to it as for "clip"; for "wrap" they are taken modulo the extent.

    Shape: that to which the coordinates broadcast.
    Dtype: int64.

    Raises:
        TypeError: the coordinates are not integers.
        ValueError: there is not one array for each axis, a static coordinate is out of range, or
            `mode` or `order` is unknown, or the shape is too large or has no elements.

    >>> tnp.ravel_multi_index(np.array([[0, 1], [1, 2]]), (2, 3))
    array([1, 5])
    """
    extents = extents_of(dims)
    require_size(extents)
    coordinates = [_integers("ravel_multi_index", c) for c in multi_index]
    if 0 in extents and 0 not in broadcast_shapes(*(c.shape for c in coordinates)):
        raise ValueError(f"cannot unravel if shape has zero entries, got {extents}")
    modes = (mode,) * len(extents) if isinstance(mode, str) else tuple(mode)
    if not len(coordinates) == len(extents) == len(modes):
        raise ValueError(
            f"ravel_multi_index needs one array of coordinates and one mode for each of the "
            f"{len(extents)} axes, got {len(coordinates)} and {len(modes)}"
        )
    result: Any = None
    for axis in reversed(_fastest_first(len(extents), order)):
        along = checked(coordinates[axis], extents[axis], modes[axis], "coordinates array")
        result = along if result is None else add(multiply(result, extents[axis]), along)
    return result


def require_size(extents: Sequence[int]) -> None:
    """Require that the number of elements of an array fits 64 bits.

    Raises:
        ValueError: it does not.
    """
    if prod(n for n in extents if n) > np.iinfo(np.int64).max:
        raise ValueError(f"an array of shape {tuple(extents)} is larger than the maximum possible")


def _fastest_first(rank: int, order: str) -> list[int]:
    if order not in ("C", "F"):
        raise ValueError(f'order must be "C" or "F", got {order!r}')
    return [*range(rank)] if order == "F" else [*range(rank)][::-1]


def _integers(name: str, values: Any) -> Any:
    values = as_array(values)
    if values.dtype.kind not in "biu":
        raise TypeError(f"{name} needs integers, got {values.dtype}")
    return as_array(values, np.int64)


@numpy_function
def ix_(*args: Any) -> tuple[Any, ...]:
    """Sequences along an axis of their own each, so that they index a grid: an open mesh.

    A sequence of booleans stands for the positions of its true elements, and must be static.

    Shape: the k-th has its elements along axis k, and extents of 1 along the others.
    Dtype: those of the sequences; int64 for booleans.

    Raises:
        ShapeDependentError: a traced sequence of booleans.
        ValueError: a sequence has not one axis.

    >>> tnp.ix_([0, 1], np.array([True, False, True]))
    (array([[0],
           [1]]), array([[0, 2]]))
    """
    mesh = []
    for k, sequence in enumerate(args):
        along = as_array(sequence)
        if along.ndim != 1:
            raise ValueError(f"ix_ needs sequences with one axis, got shape {along.shape}")
        if along.size == 0 and not hasattr(sequence, "dtype"):
            along = as_array(along, np.int64)
        if along.dtype == np.bool_:
            if isinstance(along, Tracer):
                call = "tracegraph.numpy.flatnonzero(x, size=n) instead of the booleans x"
                raise ShapeDependentError(along, "numpy.ix_ of booleans", call)
            along = np.flatnonzero(np.asarray(along))
        mesh.append(reshape(along, (1,) * k + (along.size,) + (1,) * (len(args) - k - 1)))
    return tuple(mesh)


class AxisConcatenator:
    """What `r_` and `c_` are: `r_[a, 0, b]` joins arrays, numbers and ranges along an axis.

    Args:
        numpys: NumPy's object of the same name, which takes what holds nothing of ours.
        axis: the axis along which arrays are joined.
        ndmin: the number of axes to which arrays are raised.
        trans1d: the axis at which the axes of a raised array start.
    """

    def __init__(self, numpys: Any, axis: int, ndmin: int, trans1d: int) -> None:
        self._numpys = numpys
        self._defaults = axis, ndmin, trans1d

    def __getitem__(self, key: Any) -> Any:
        items = list(key) if isinstance(key, tuple) else [key]
        bounds = [(e.start, e.stop, e.step) for e in items if isinstance(e, slice)]
        if not is_ours(items) and not is_ours(bounds):
            return self._numpys[key]
        axis, ndmin, trans1d = self._defaults
        if isinstance(items[0], str):
            axis, ndmin, trans1d = _directive(items.pop(0), *self._defaults)
        parts = [_range(e) if isinstance(e, slice) else e for e in items]
        parts = [part if is_python_number(part) else as_array(part) for part in parts]
        dtype = result_type(*map(type_of, parts)) if len(parts) > 1 else None
        return concatenate([_raised(as_array(p, dtype), ndmin, trans1d) for p in parts], axis)


def _directive(text: str, axis: int, ndmin: int, trans1d: int) -> tuple[int, int, int]:
    """Axis, ndmin and trans1d after a string such as "0,2,1"."""
    if text in ("r", "c"):
        raise UnsupportedByTracerError(f"numpy.r_[{text!r}, ...], a matrix", 'use "0,2" or "1,2"')
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"unknown special directive {text!r}") from None
    return (*numbers, *(axis, ndmin, trans1d)[len(numbers) :])[:3]  # type: ignore[return-value]


def _range(bounds: slice) -> Any:
    """`start:stop:step` as a range; with an imaginary step `nj`, n points up to `stop`."""
    start = 0 if bounds.start is None else bounds.start
    step = 1 if bounds.step is None else bounds.step
    if isinstance(step, complex):
        return linspace(start, bounds.stop, int(abs(step)))
    return arange(start, bounds.stop, step)


def _raised(array: Any, ndmin: int, trans1d: int) -> Any:
    """An array of at least `ndmin` axes, its own axes from `trans1d` on."""
    new = ndmin - array.ndim
    if new <= 0:
        return array
    rank, array = array.ndim, reshape(array, (1,) * new + array.shape)
    if trans1d == -1 or rank == 0:
        return array
    before = trans1d if trans1d >= 0 else trans1d + new + 1
    axes = [*range(ndmin)]
    return transpose(array, axes[:before] + axes[new:] + axes[before:new])


r_ = AxisConcatenator(np.r_, 0, 1, -1)
c_ = AxisConcatenator(np.c_, -1, 2, 0)
