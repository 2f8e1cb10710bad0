"""Functions that repeat elements or arrays."""

from __future__ import annotations

from math import prod
from operator import index
from typing import Any

import numpy as np

from tracegraph.arrays.eager import apply
from tracegraph.errors import ShapeDependentError
from tracegraph.ir.op import get
from tracegraph.numpy.creation import full, zeros_like
from tracegraph.numpy.dispatching.dispatch import (
    as_array,
    copied,
    lifted,
    numpy_function,
    sized_function,
)
from tracegraph.numpy.dispatching.statics import Static
from tracegraph.numpy.shapes import Shape, broadcast_to, expand_dims, extents_of, reshape, with_axis
from tracegraph.tracing.operators import ArrayOperators
from tracegraph.tracing.tracer import Tracer

__all__ = ["repeat", "resize", "tile"]


@numpy_function
def tile(A: Any, reps: Static) -> Any:  # noqa: N803  (NumPy's name)
    """The array repeated along each axis.

    Shape: each extent times its count; missing counts are 1.
    Dtype: that of `A`.

    Raises:
        ValueError: a count is negative.
        TypeError: a count is not an integer.

    >>> tnp.tile([1, 2], 2)
    array([1, 2, 1, 2])
    """
    a = as_array(A)
    counts = (index(reps),) if np.ndim(reps) == 0 else tuple(map(index, reps))
    if min(counts, default=0) < 0:
        raise ValueError(f"tile: counts must not be negative, got {reps}")
    rank = max(a.ndim, len(counts))
    counts = (1,) * (rank - len(counts)) + counts
    extents = (1,) * (rank - a.ndim) + a.shape
    spread = [n for pair in zip(counts, extents, strict=True) for n in pair]
    a = reshape(a, tuple(n for extent in extents for n in (1, extent)))
    total = tuple(c * n for c, n in zip(counts, extents, strict=True))
    return copied(reshape(broadcast_to(a, tuple(spread)), total))


@sized_function
def repeat(
    a: Any, repeats: Any, axis: int | None = None, *, total_repeat_length: int | None = None
) -> Any:
    """Each element repeated a number of times: one number for all, or one for each.

    Traced numbers need the static length of the result, `total_repeat_length`: what is beyond is
    left out, and the last element fills what is missing.

    Shape: that of `a` with a longer axis; one axis without `axis`.
    Dtype: that of `a`.

    Raises:
        ShapeDependentError: the numbers are traced, without `total_repeat_length`.
        AxisError: the axis is out of range.
        ValueError: there is neither one count nor one for each element, or a count is negative.
        TypeError: an array of counts is not of integers.

    >>> tnp.repeat([1, 2], [2, 1])
    array([1, 1, 2])
    >>> tnp.repeat(np.array([1, 2]), [2, 1], total_repeat_length=5)
    array([1, 1, 2, 2, 2])
    """
    a, axis = with_axis(as_array(a), axis)
    counts = as_array(repeats)
    if total_repeat_length is None and isinstance(counts, Tracer):
        call = "tracegraph.numpy.repeat(x, repeats, total_repeat_length=n)"
        given = repeats if isinstance(repeats, Tracer) else counts
        raise ShapeDependentError(given, "numpy.repeat", call)
    if total_repeat_length is not None:
        return _repeated(a, counts, axis, index(total_repeat_length))
    counts = _static_counts(repeats, np.asarray(counts))
    if counts.size == 1:
        count = int(counts.reshape(()))
        spread = (*a.shape[: axis + 1], count, *a.shape[axis + 1 :])
        total = (*a.shape[:axis], a.shape[axis] * count, *a.shape[axis + 1 :])
        return copied(reshape(broadcast_to(expand_dims(a, axis + 1), spread), total))
    _check_counts(counts, a.shape[axis])
    return a[(*(slice(None),) * axis, np.repeat(np.arange(a.shape[axis]), counts))]


def _static_counts(given: Any, counts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Counts as int64, also those of uint64, which the array API standard allows, unlike NumPy."""
    if isinstance(given, (np.ndarray, ArrayOperators)) and counts.dtype.kind not in "biu":
        raise TypeError(f"repeats must be integers, got {counts.dtype}")
    if counts.size and int(counts.min()) < 0:
        raise ValueError(f"repeats must not be negative, got {int(counts.min())}")
    if counts.size and int(counts.max()) > np.iinfo(np.int64).max:
        raise ValueError(f"repeats must fit in int64, got {int(counts.max())}")
    return counts.astype(np.int64)


def _check_counts(counts: Any, extent: int) -> None:
    if counts.shape != (extent,):
        raise ValueError(
            f"repeats of shape {counts.shape} must have one count for each of the {extent} "
            "elements of the axis"
        )


def _repeated(a: Any, counts: Any, axis: int, length: int) -> Any:
    """An axis repeated to a length: element k is the last that starts at or before k."""
    extent = a.shape[axis]
    if length < 0:
        raise ValueError(f"total_repeat_length must not be negative, got {length}")
    if extent == 0 and length:
        raise ValueError(f"cannot repeat an axis without elements to length {length}")
    if counts.dtype.kind not in "biu":
        raise TypeError(f"repeats must be integers, got {counts.dtype}")
    counts = as_array(counts, np.int64)
    if counts.size == 1:
        counts = broadcast_to(reshape(counts, (1,)), (extent,))
    _check_counts(counts, extent)
    if not length:
        return a[(*(slice(None),) * axis, slice(0))]
    ends = apply(get("cumsum"), lifted(counts)[:-1], axis=0)
    none, ones = full(length, np.int64(0)), full(extent - 1, np.int64(1))
    starting = apply(get("scatter_add"), none, ones, ends, dims=(0,), starts=(), steps=())
    which = apply(get("cumsum"), starting, axis=0)
    return lifted(a)[(*(slice(None),) * axis, which)]


@numpy_function
def resize(a: Any, new_shape: Shape) -> Any:
    """The elements in row-major order, from the start again as often as needed, in another shape.

    Shape: `new_shape`.
    Dtype: that of `a`.

    Raises:
        ValueError: an extent is negative.
        StaticArgumentError: an extent is traced.

    >>> tnp.resize([1, 2, 3], (2, 4))
    array([[1, 2, 3, 1],
           [2, 3, 1, 2]])
    """
    a = as_array(a)
    shape = extents_of(new_shape)
    if min(shape, default=0) < 0:
        raise ValueError(f"all extents of `new_shape` must be non-negative, got {new_shape}")
    size = prod(shape)
    if a.size == 0:
        return zeros_like(a, shape=shape)
    flat = reshape(a, (a.size,))
    if size <= a.size:
        return copied(reshape(flat[:size], shape))
    whole = tile(flat, -(-size // a.size))
    return reshape(whole[:size], shape)
