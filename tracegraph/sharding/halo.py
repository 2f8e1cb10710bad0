"""halo: the elements next to a block, from the neighbours along an axis of devices."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from tracegraph import errors
from tracegraph.errors.keywords import required_int
from tracegraph.errors.tracebacks import entry_point
from tracegraph.ir.types import ArrayType, type_of
from tracegraph.sharding.collectives import axis_index, axis_size, ppermute
from tracegraph.tracing.tracer import Tracer

__all__ = ["halo"]


@entry_point
def halo(
    x: Any,
    axis_name: str,
    *,
    width: int = 1,
    axis: int = 0,
    boundary: float | Literal["periodic"] = "periodic",
) -> tuple[Any, Any]:
    """What is before and behind a block of an array that is divided along an axis.

    Shape: that of x, with `width` elements along `axis`, for both.
    Dtype: that of x.

    Args:
        x: the block of this device.
        axis_name: the axis of the mesh over which the array is divided.
        width: how many elements of the neighbours.
        axis: the axis of the array that is divided.
        boundary: ``"periodic"``, where the first block follows the last one; or the number that
            stands outside of the array, which may be a traced scalar.

    Returns:
        The last elements of the block before, and the first ones of the block behind.

    Raises:
        CollectiveOutsideShardError, UnknownAxisError: as in `psum`.
        TypeError: `width` or `axis` is no integer.
        ShardingError: the block has fewer than `width` elements, or `boundary` is something else,
            or a number that no block of this dtype has.
        numpy.exceptions.AxisError: x has no such axis.

    >>> import tracegraph
    >>> def smoothed(x):
    ...     before, behind = halo(x, "i", boundary=0.0)
    ...     around = np.concatenate([before, x, behind])
    ...     return around[:-2] + around[1:-1] + around[2:]
    >>> tracegraph.vmap(smoothed, axis_name="i")(np.arange(6.0).reshape(3, 2))
    array([[ 1.,  3.],
           [ 6.,  9.],
           [12.,  9.]])
    """
    if not isinstance(axis_name, str):
        raise errors.ShardingError(
            f"halo: axis_name must be the name of one axis, got {errors.value_text(axis_name)}"
        )
    count, type_ = axis_size(axis_name), type_of(x)
    size = required_int("width", width, "a number of elements")
    at = required_int("axis", axis, "the number of an axis")
    if not -type_.ndim <= at < type_.ndim:
        raise np.exceptions.AxisError(at, type_.ndim, "halo")
    at %= type_.ndim
    if not 0 <= size <= type_.shape[at]:
        raise errors.ShardingError(
            f"halo: a block of {type_} has {type_.shape[at]} elements along axis {at}, and its "
            f"neighbours are to send {size}; divide the array among fewer devices"
        )
    around = isinstance(boundary, str) and boundary == "periodic"
    outside = None if around else _element(boundary, type_)
    index: list[Any] = [slice(None)] * type_.ndim
    first, last = (index.copy() for _ in range(2))
    first[at], last[at] = slice(0, size), slice(type_.shape[at] - size, None)
    pairs = [(i, (i + 1) % count) for i in range(count if around else count - 1)]
    before = ppermute(x[tuple(last)], axis_name, pairs)
    behind = ppermute(x[tuple(first)], axis_name, [(target, source) for source, target in pairs])
    if around or (not isinstance(outside, Tracer) and outside == 0):
        return before, behind
    number = axis_index(axis_name)
    return np.where(number == 0, outside, before), np.where(number == count - 1, outside, behind)


def _element(boundary: Any, block: ArrayType) -> Any:
    """A boundary as an element of a block.

    Raises:
        ShardingError: it is no number, or none that the block may have as an element.
    """
    try:
        found = type_of(boundary)
    except TypeError:
        found = None
    if found is None or found.shape:
        got = errors.value_text(boundary)
        raise errors.ShardingError(f'halo: boundary is "periodic" or a number, not {got}')
    dtype = block.dtype
    may_cast = np.can_cast(found.dtype, dtype, "same_kind")
    if isinstance(boundary, Tracer):
        element = boundary.astype(dtype) if may_cast else None
    elif dtype.kind in "biu":  # whatever the type of the number, as 0 is for unsigned integers
        element = _converted(boundary, dtype)
        element = element if element == boundary else None
    else:
        element = _converted(boundary, dtype) if may_cast else None
    if element is None:
        raise errors.ShardingError(
            f"halo: boundary is {errors.value_text(boundary)}, which is no element of a block of "
            f"{block}"
        )
    return element


def _converted(number: Any, dtype: np.dtype[Any]) -> Any:
    """A number as one of a dtype, which may be rounded; None if it has none."""
    try:
        with np.errstate(all="ignore"):
            return dtype.type(number)
    except (OverflowError, TypeError, ValueError):
        return None
