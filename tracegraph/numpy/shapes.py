"""Functions that rearrange axes and elements. Where NumPy returns a view, so do these."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from operator import index
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from tracegraph.arrays.eager import apply
from tracegraph.errors import UnsupportedByTracerError
from tracegraph.ir.op import get
from tracegraph.ir.types import broadcast_shapes
from tracegraph.numpy.dispatch import as_array, copied, numpy_function
from tracegraph.tracing.tracer import Tracer
from tracegraph.tracing.views import row_major, strides_of

_RESHAPE, _TRANSPOSE, _BROADCAST, _SLICE = map(
    get, ("reshape", "transpose", "broadcast_to", "slice")
)

Shape = int | Sequence[int]


def extents_of(shape: Shape) -> tuple[int, ...]:
    """A shape as a tuple.

    Raises:
        TracerIndexError: an extent is traced.
    """
    if isinstance(shape, (tuple, Sequence, np.ndarray)):  # tuple first: the common case, and faster
        return tuple(map(index, shape))
    return (index(shape),)


def _row_major_only(name: str, order: str | None) -> None:
    if order not in ("C", "K", "A", None):
        raise UnsupportedByTracerError(
            f"order={order!r} of numpy.{name}",
            "traced arrays are row-major; transpose before and after",
        )


@numpy_function
def reshape(a: Any, /, shape: Shape, order: str = "C", *, copy: bool | None = None) -> Any:
    """The same elements, in row-major order, under another shape; one extent may be -1.

    Shape: `shape`; -1 is what is left.
    Dtype: that of `a`.

    Raises:
        ValueError: the number of elements differs.
        TracerIndexError: an extent is traced.
        UnsupportedByTracerError: another `order` than row-major.

    >>> tnp.reshape([1, 2, 3, 4], (2, -1))
    array([[1, 2],
           [3, 4]])
    """
    _row_major_only("reshape", order)
    a = as_array(a)
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
    return copied(result) if copy else result


@numpy_function
def ravel(a: Any, order: str = "C") -> Any:
    """The elements in one axis: a view of a row-major array, else a copy.

    Shape: one axis.
    Dtype: that of `a`.

    Raises:
        UnsupportedByTracerError: another `order` than row-major.

    >>> tnp.ravel([[1, 2], [3, 4]])
    array([1, 2, 3, 4])
    """
    _row_major_only("ravel", order)
    a = as_array(a)
    result = reshape(a, (a.size,))
    return copied(result) if isinstance(a, Tracer) and not _is_row_major(a) else result


def _is_row_major(a: Tracer) -> bool:
    """Whether the strides are row-major; those of axes of extent 1 do not count, as in NumPy."""
    strides = zip(a.shape, strides_of(a), row_major(a.shape), strict=True)
    return a.size == 0 or all(n == 1 or own == wanted for n, own, wanted in strides)


@numpy_function
def transpose(a: Any, axes: Sequence[int] | None = None) -> Any:
    """Axes in another order: axis k of the result is axis `axes[k]`; reversed by default.

    Shape: the extents in the new order.
    Dtype: that of `a`.

    Raises:
        AxisError: an axis is out of range.
        ValueError: an axis is missing or named twice.

    >>> tnp.transpose([[1, 2, 3], [4, 5, 6]])
    array([[1, 4],
           [2, 5],
           [3, 6]])
    """
    a = as_array(a)
    order = range(a.ndim)[::-1] if axes is None else normalize_axis_tuple(axes, a.ndim)
    if len(order) != a.ndim:
        raise ValueError(f"axes {axes} must name each of the {a.ndim} axes once")
    return a if tuple(order) == tuple(range(a.ndim)) else apply(_TRANSPOSE, a, axes=tuple(order))


def permute_dims(a: Any, /, axes: Sequence[int]) -> Any:
    """The same as `transpose`.

    Shape: the extents in the new order.
    Dtype: that of `a`.

    Raises:
        AxisError: an axis is out of range.
        ValueError: an axis is missing or named twice.

    >>> tnp.permute_dims([[1, 2, 3], [4, 5, 6]], (1, 0))
    array([[1, 4],
           [2, 5],
           [3, 6]])
    """
    return transpose(a, axes)


def matrix_transpose(x: Any, /) -> Any:
    """The last two axes swapped.

    Shape: (…, n, m) of (…, m, n).
    Dtype: that of `x`.

    Raises:
        ValueError: there are fewer than two axes.

    >>> tnp.matrix_transpose([[1, 2, 3], [4, 5, 6]])
    array([[1, 4],
           [2, 5],
           [3, 6]])
    """
    if np.ndim(x) < 2:
        raise ValueError(f"matrix_transpose needs at least two axes, got shape {np.shape(x)}")
    return swapaxes(x, -1, -2)


@numpy_function
def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """Two axes swapped.

    Shape: the two extents swapped.
    Dtype: that of `a`.

    Raises:
        AxisError: an axis is out of range.

    >>> tnp.swapaxes([[1, 2, 3], [4, 5, 6]], 0, 1)
    array([[1, 4],
           [2, 5],
           [3, 6]])
    """
    a = as_array(a)
    i, j = normalize_axis_index(axis1, a.ndim), normalize_axis_index(axis2, a.ndim)
    order = list(range(a.ndim))
    order[i], order[j] = j, i
    return transpose(a, order)


@numpy_function
def moveaxis(a: Any, source: Shape, destination: Shape) -> Any:
    """Axes moved to other positions; the others keep their order.

    Shape: the extents in the new order.
    Dtype: that of `a`.

    Raises:
        AxisError: an axis is out of range.
        ValueError: the numbers of positions differ, or an axis is named twice.

    >>> tnp.moveaxis([[1, 2, 3], [4, 5, 6]], 0, -1)
    array([[1, 4],
           [2, 5],
           [3, 6]])
    """
    a = as_array(a)
    from_ = normalize_axis_tuple(source, a.ndim, "source")
    to = normalize_axis_tuple(destination, a.ndim, "destination")
    if len(from_) != len(to):
        raise ValueError(f"source {source} and destination {destination} must have equal lengths")
    order = [axis for axis in range(a.ndim) if axis not in from_]
    for position, axis in sorted(zip(to, from_, strict=True)):
        order.insert(position, axis)
    return transpose(a, order)


@numpy_function
def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """An axis moved to before `start`.

    Shape: the extents in the new order.
    Dtype: that of `a`.

    Raises:
        AxisError: an axis is out of range.

    >>> tnp.rollaxis(np.array([[1, 2, 3], [4, 5, 6]]), 1)
    array([[1, 4],
           [2, 5],
           [3, 6]])
    """
    a = as_array(a)
    axis = normalize_axis_index(axis, a.ndim)
    start = start + a.ndim if start < 0 else start
    return moveaxis(a, axis, start - 1 if axis < start else start)


@numpy_function
def broadcast_to(array: Any, shape: Shape, subok: bool = False) -> Any:
    """The array repeated along new axes and axes of extent 1; a read-only view.

    Shape: `shape`.
    Dtype: that of `array`.

    Raises:
        ValueError: the shape does not broadcast to the other.
        TracerIndexError: an extent is traced.

    >>> tnp.broadcast_to([1, 2], (2, 2))
    array([[1, 2],
           [1, 2]])
    """
    array = as_array(array)
    target = extents_of(shape)
    if broadcast_shapes(array.shape, target) != target:
        raise ValueError(f"shape {array.shape} does not broadcast to {target}")
    return apply(_BROADCAST, array, shape=target) if array.shape != target else array


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
def expand_dims(a: Any, axis: Shape) -> Any:
    """New axes of extent 1, at these positions of the result.

    Shape: that of `a` with new extents of 1.
    Dtype: that of `a`.

    Raises:
        AxisError: an axis is out of range.

    >>> tnp.expand_dims([1, 2], 0)
    array([[1, 2]])
    """
    a = as_array(a)
    count = 1 if isinstance(axis, int) else len(axis)
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
        if axis is None
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


@numpy_function
def split(ary: Any, indices_or_sections: Shape, axis: int = 0) -> list[Any]:
    """Consecutive parts along an axis, equal ones or cut at indices; views.

    Shape: that of `ary` but for the axis.
    Dtype: that of `ary`.

    Raises:
        ValueError: the axis does not divide equally.
        AxisError: the axis is out of range.

    >>> tnp.split(np.arange(4), 2)
    [array([0, 1]), array([2, 3])]
    """
    ary = as_array(ary)
    if isinstance(indices_or_sections, int) and ary.shape[axis] % indices_or_sections:
        raise ValueError(
            f"array split does not result in an equal division: axis {axis} of shape {ary.shape} "
            f"by {indices_or_sections}; use array_split"
        )
    return array_split(ary, indices_or_sections, axis)


@numpy_function
def array_split(ary: Any, indices_or_sections: Shape, axis: int = 0) -> list[Any]:
    """Consecutive parts along an axis, nearly equal ones or cut at indices; views.

    Shape: that of `ary` but for the axis.
    Dtype: that of `ary`.

    Raises:
        AxisError: the axis is out of range.

    >>> tnp.array_split(np.arange(5), 2)
    [array([0, 1, 2]), array([3, 4])]
    """
    ary = as_array(ary)
    axis = normalize_axis_index(axis, ary.ndim)
    extent = ary.shape[axis]
    if isinstance(indices_or_sections, int):
        each, more = divmod(extent, indices_or_sections)
        sizes = [each + 1] * more + [each] * (indices_or_sections - more)
        cuts = [0, *np.cumsum(sizes).tolist()]
    else:
        cuts = [0, *(int(n) for n in indices_or_sections), extent]
    before = (slice(None),) * axis
    return [ary[(*before, slice(start, stop))] for start, stop in pairwise(cuts)]


@numpy_function
def hsplit(ary: Any, indices_or_sections: Shape) -> list[Any]:
    """Parts along the second axis, or the first of a one-dimensional array.

    Shape: that of `ary` but for one axis.
    Dtype: that of `ary`.

    Raises:
        ValueError: the axis does not divide equally.

    >>> tnp.hsplit(np.arange(4), [1, 3])
    [array([0]), array([1, 2]), array([3])]
    """
    return split(ary, indices_or_sections, 1 if np.ndim(ary) > 1 else 0)


@numpy_function
def vsplit(ary: Any, indices_or_sections: Shape) -> list[Any]:
    """Parts along the first axis.

    Shape: that of `ary` but for the first axis.
    Dtype: that of `ary`.

    Raises:
        ValueError: the axis does not divide equally.

    >>> tnp.vsplit(np.array([[1, 2], [3, 4]]), 2)
    [array([[1, 2]]), array([[3, 4]])]
    """
    return split(ary, indices_or_sections, 0)


@numpy_function
def dsplit(ary: Any, indices_or_sections: Shape) -> list[Any]:
    """Parts along the third axis.

    Shape: that of `ary` but for the third axis.
    Dtype: that of `ary`.

    Raises:
        ValueError: the axis does not divide equally.

    >>> tnp.dsplit(np.zeros((1, 1, 2)), 2)
    [array([[[0.]]]), array([[[0.]]])]
    """
    return split(ary, indices_or_sections, 2)


@numpy_function
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The slices along an axis.

    Shape: that of `x` without the axis.
    Dtype: that of `x`.

    Raises:
        AxisError: the axis is out of range.

    >>> tnp.unstack(np.array([[1, 2], [3, 4]]))
    (array([1, 2]), array([3, 4]))
    """
    return tuple(moveaxis(x, axis, 0))
