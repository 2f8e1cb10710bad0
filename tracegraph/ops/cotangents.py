"""What rules of derivatives share: numbers of a dtype, zeros, sums over broadcast axes, indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracegraph.ir.derivative import Emitter
from tracegraph.ir.program import Literal
from tracegraph.ir.types import ArrayType, broadcast_shapes

Types = Sequence[Any]
"""The type of each operand of a transpose; None for one that needs no cotangent."""


def number(x: Any, value: float) -> Any:
    """A scalar of the dtype of x."""
    return x.dtype.type(value)


def is_literal(x: Any) -> bool:
    """Whether a traced value is a number that is known, and never has a tangent."""
    return isinstance(getattr(x, "atom", None), Literal)


def filled(f: Emitter, type_: ArrayType, value: float = 0) -> Any:
    """An array of one value."""
    return f.broadcast_to(type_.dtype.type(value), shape=type_.shape)


def indicator(f: Emitter, condition: Any, like: Any) -> Any:
    """1 where a condition holds, else 0, in the dtype of `like`."""
    return f.where(condition, number(like, 1), number(like, 0))


def nonzero(f: Emitter, x: Any) -> Any:
    """X with the least positive number in place of 0: a divisor of a numerator that is also 0 then.

    The quotient is 0, and its derivative infinite, as it is at the origin of a norm.
    """
    return f.where(f.equal(x, number(x, 0)), least_positive(x.dtype), x)


def least_positive(dtype: np.dtype[Any]) -> Any:
    """The least number above 0 of a real dtype."""
    return np.nextafter(dtype.type(0), dtype.type(1))


def with_rule(f: Emitter, value: Any, of: str, *operands: Any, **attrs: Any) -> Any:
    """A value of elements, as a function of operands that the rule of a name differentiates.

    It is one that `ops.derivatives.derivative_rule` has entered.
    """
    shape = broadcast_shapes(*(x.shape for x in operands))
    whole = [x if x.shape == shape else f.broadcast_to(x, shape=shape) for x in operands]
    return f.with_derivative(f.stop_gradient(value), *whole, of=of, **attrs)


def unbroadcast(f: Emitter, ct: Any, type_: ArrayType) -> Any:
    """The transpose of broadcasting a value of this type: sums over added and stretched axes."""
    if ct.shape == type_.shape:
        return ct
    added = ct.ndim - type_.ndim
    stretched = [added + i for i, n in enumerate(type_.shape) if n != ct.shape[added + i]]
    summed = f.sum(ct, axes=(*range(added), *stretched))
    return summed if summed.shape == type_.shape else f.reshape(summed, shape=type_.shape)


def kept_shape(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """The shape with extent 1 along the axes."""
    return tuple([1 if axis in axes else n for axis, n in enumerate(shape)])


def stretched(f: Emitter, x: Any, shape: Sequence[int], axes: Sequence[int]) -> Any:
    """The result of a reduction over `axes` repeated along them."""
    return f.broadcast_to(f.reshape(x, shape=kept_shape(shape, axes)), shape=tuple(shape))


def wrapped(f: Emitter, index: Any, extent: int) -> Any:
    """Indices as i64, negative ones counted from the end; they may still be out of range."""
    signed = index.dtype.kind == "i"
    if index.dtype == np.uint64:
        index = f.minimum(index, np.uint64(extent))
    found = index if index.dtype == np.int64 else f.cast(index, dtype=np.dtype(np.int64))
    if not signed:
        return found
    return f.where(f.less(found, np.int64(0)), f.add(found, np.int64(extent)), found)


def clipped(f: Emitter, index: Any, extent: int) -> Any:
    """Indices as a gather takes them: wrapped once, then clamped."""
    low = f.maximum(wrapped(f, index, extent), np.int64(0))
    return f.minimum(low, np.int64(max(extent - 1, 0)))


def in_range(f: Emitter, indices: Sequence[Any], extents: Sequence[int]) -> Any:
    """Whether a scatter writes at these indices: a bool array of their shape."""
    found = None
    for index, extent in zip(indices, extents, strict=True):
        at = wrapped(f, index, extent)
        inside = f.logical_and(f.greater_equal(at, np.int64(0)), f.less(at, np.int64(extent)))
        found = inside if found is None else f.logical_and(found, inside)
    return found
