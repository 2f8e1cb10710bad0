"""Arrays whose elements follow from their indices: ranges, and matrices of ones and zeros."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tracegraph.arrays.array import Array
from tracegraph.arrays.eager import apply
from tracegraph.errors import TracerIndexError
from tracegraph.ir.op import get
from tracegraph.ir.types import result_type, type_of
from tracegraph.numpy.axes import moveaxis
from tracegraph.numpy.creation import check_options, copy, iota, order_of_new, placed
from tracegraph.numpy.dispatching.dispatch import as_array, copied, is_ours, lifted
from tracegraph.numpy.dispatching.statics import Static, static_parameters
from tracegraph.numpy.eager_arrays import eager
from tracegraph.numpy.elementwise import astype
from tracegraph.numpy.shapes import extents_of, reshape
from tracegraph.numpy.ufuncs import add, divide, equal, floor, less_equal, multiply, subtract
from tracegraph.tracing.trace import current_trace
from tracegraph.tracing.tracer import Tracer

__all__ = ["arange", "eye", "identity", "linspace", "tri"]


@static_parameters
def arange(
    start: Static = None,
    stop: Static = None,
    step: Static = None,
    dtype: DTypeLike | None = None,
    *,
    device: str | None = None,
    **kwargs: Any,
) -> Any:
    """Evenly spaced values between static bounds: `arange(stop)`, `arange(start, stop, step)`.

    Shape: one axis, of ceil((stop - start) / step) elements.
    Dtype: the common one of the bounds, or `dtype`.

    Raises:
        TracerIndexError: a bound is traced.
        TypeError: there is no bound.
        UnsupportedByTracerError: an option of NumPy that is not supported.

    >>> tnp.arange(1, 7, 2)
    array([1, 3, 5])
    """
    check_options("arange", kwargs)
    if stop is None:
        start, stop = None, start
    if stop is None:
        raise TypeError("arange needs a bound: arange(stop), or arange(start, stop, step)")
    bounds = [0 if start is None else start, stop, 1 if step is None else step]
    for number, bound in enumerate(bounds):
        if isinstance(bound, Tracer):
            raise TracerIndexError(bound, "numpy.arange")
        if type(bound) is Array:
            bounds[number] = bound.item() if bound.weak else np.asarray(bound)[()]
    values = np.arange(*bounds, dtype=dtype)
    if current_trace() is None or values.dtype.kind not in "iu" or values.size < 2:
        return placed(copied(lifted(values)), device)
    first, second = values[:2]
    result = iota(values.size, values.dtype)
    if second - first != 1:
        result = multiply(result, second - first)
    return placed(add(result, first) if first != 0 else result, device)


@static_parameters
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: str | None = None,
) -> Any:
    """`num` evenly spaced values from `start` to `stop`, which may be traced, along a new axis.

    Shape: that to which the bounds broadcast, with a new axis of `num`.
    Dtype: floating point or complex, or `dtype`.

    Raises:
        AxisError: the axis is out of range.
        ValueError: the shapes do not broadcast, or `num` is negative.

    >>> tnp.linspace(0, 1, 3)
    array([0. , 0.5, 1. ])
    """
    if not is_ours((start, stop)):
        found, width = np.linspace(start, stop, num, endpoint, retstep=True, dtype=dtype, axis=axis)
        result = placed(copied(lifted(found)), device)
        return (result, width) if retstep else result
    num = index(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    start, stop = (as_array(v) if isinstance(v, (list, tuple)) else v for v in (start, stop))
    intervals = num - 1 if endpoint else num
    inexact = result_type(type_of(start), type_of(stop), type_of(1.0))
    start, stop = as_array(start, inexact), as_array(stop, inexact)
    spread = subtract(stop, start)
    step = divide(spread, intervals) if intervals > 0 else np.nan
    rank = len(np.broadcast_shapes(start.shape, stop.shape))
    positions = reshape(iota(num, inexact), (num,) + (1,) * rank)
    if intervals > 0:
        exact = multiply(divide(positions, intervals), spread)  # where the step underflows to 0
        result = apply(get("where"), equal(step, 0), exact, multiply(positions, step))
    else:
        result = multiply(positions, spread)
    result = add(result, start)
    if endpoint and num > 1:
        result = result.at[-1].set(stop)
    if dtype is not None and np.dtype(dtype).kind in "iu":
        result = floor(result)
    result = astype(moveaxis(result, 0, axis), result.dtype if dtype is None else dtype)
    result = placed(result, device)
    return (result, step) if retstep else result


@static_parameters
def eye(
    N: int,  # noqa: N803  (NumPy's name)
    M: int | None = None,  # noqa: N803
    k: int = 0,
    dtype: DTypeLike = float,
    order: str = "C",
    *,
    device: str | None = None,
    **kwargs: Any,
) -> Any:
    """Ones on the k-th diagonal, zeros elsewhere.

    Shape: (N, M), by default (N, N).
    Dtype: `dtype`, float64 by default.

    Raises:
        TracerIndexError: an extent is traced.
        ValueError: `order` is neither "C" nor "F".
        UnsupportedByTracerError: an option of NumPy that is not supported.

    >>> tnp.eye(2, 3, k=1, dtype=int)
    array([[0, 1, 0],
           [0, 0, 1]])
    """
    check_options("eye", kwargs)
    rows, columns = extents_of((N, N if M is None else M))
    k = nearest_diagonal(k, rows, columns)
    if current_trace() is None:
        return placed(np.eye(rows, columns, k, dtype, order), device)  # type: ignore[call-overload]
    found = astype(equal(diagonals(rows, columns), k), dtype)
    return placed(found if order_of_new(order) == "C" else copy(found, order), device)


def diagonals(rows: int, columns: int) -> Any:
    """For each element of a matrix, the number of its diagonal, as `k` counts them."""
    row, column = iota(rows, np.int64).reshape(rows, 1), iota(columns, np.int64)
    return subtract(column, row)


def nearest_diagonal(k: Any, rows: int, columns: int) -> Any:
    """`k`, or if it is static and outside of the matrix, the diagonal just outside of it."""
    return max(-rows, min(int(k), columns)) if isinstance(k, (int, np.integer)) else k


@static_parameters
def identity(n: int, dtype: DTypeLike | None = None, **kwargs: Any) -> Any:
    """The identity matrix.

    Shape: (n, n).
    Dtype: `dtype`, float64 by default.

    Raises:
        TracerIndexError: an extent is traced.
        UnsupportedByTracerError: an option of NumPy that is not supported.

    >>> tnp.identity(2)
    array([[1., 0.],
           [0., 1.]])
    """
    return eye(n, dtype=float if dtype is None else dtype, **kwargs)


@static_parameters
def tri(
    N: int,  # noqa: N803
    M: int | None = None,  # noqa: N803
    k: int = 0,
    dtype: DTypeLike = float,
) -> Any:
    """Ones at and below the k-th diagonal, zeros above.

    Shape: (N, M), by default (N, N).
    Dtype: `dtype`, float64 by default.

    Raises:
        TracerIndexError: an extent is traced.

    >>> tnp.tri(2, 3, dtype=int)
    array([[1, 0, 0],
           [1, 1, 0]])
    """
    rows, columns = extents_of((N, N if M is None else M))
    k = nearest_diagonal(k, rows, columns)
    if current_trace() is None:
        return eager(np.tri(rows, columns, k, dtype))
    return astype(less_equal(diagonals(rows, columns), k), dtype)
