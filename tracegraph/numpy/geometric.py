"""Values that are evenly spaced on a logarithmic scale."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tracegraph.ir.types import ArrayType, result_type, type_of
from tracegraph.numpy.axes import moveaxis
from tracegraph.numpy.dispatching.dispatch import as_array, is_ours, lifted, numpy_function
from tracegraph.numpy.generated import linspace
from tracegraph.numpy.shapes import broadcast_arrays, expand_dims, reshape
from tracegraph.numpy.ufuncs import divide, log10, multiply, power, sign

__all__ = ["geomspace", "logspace"]


@numpy_function
def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Any:
    """`base` to the power of `num` evenly spaced values from `start` to `stop`, on a new axis.

    Shape: that to which the bounds and the base broadcast, with a new axis of `num`.
    Dtype: floating point or complex, or `dtype`.

    Raises:
        AxisError: the axis is out of range.
        ValueError: the shapes do not broadcast.

    >>> tnp.logspace(0.0, 2.0, 3)
    array([  1.,  10., 100.])
    """
    if np.ndim(base):
        bounds = [as_array(x) for x in (start, stop, base)]
        rank = max(x.ndim for x in bounds)
        start, stop, base = (reshape(x, (1,) * (rank - x.ndim) + x.shape) for x in bounds)
        base = expand_dims(base, axis)
    sequence = power(base, linspace(start, stop, num, endpoint, axis=axis))
    return sequence if dtype is None else as_array(sequence, dtype)


@numpy_function
def geomspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Any:
    """`num` values from `start` to `stop`, each the same multiple of the one before.

    Shape: that to which the bounds broadcast, with a new axis of `num`.
    Dtype: float64 or complex128, or `dtype`.

    Raises:
        AxisError: the axis is out of range.
        ValueError: a static bound is zero, or the shapes do not broadcast.

    >>> tnp.geomspace(1.0, 100.0, 3)
    array([  1.,  10., 100.])
    """
    for bound in (start, stop):
        if not is_ours((bound,)) and np.any(np.equal(bound, 0)):
            raise ValueError("Geometric sequence cannot include zero")
    of_dtype = ArrayType(np.dtype(np.float64 if dtype is None else dtype))
    within = result_type(type_of(start), type_of(stop), type_of(float(num)), of_dtype)
    start, stop = broadcast_arrays(as_array(start, within), as_array(stop, within))
    direction = sign(start)
    start, stop = divide(start, direction), divide(stop, direction)
    sequence = lifted(logspace(log10(start), log10(stop), num, endpoint, dtype=within))
    if num > 0:
        sequence = sequence.at[0].set(start)
    if num > 1 and endpoint:
        sequence = sequence.at[-1].set(stop)
    sequence = multiply(sequence, direction)
    sequence = moveaxis(sequence, 0, axis) if axis else sequence
    return as_array(sequence, within if dtype is None else dtype)
