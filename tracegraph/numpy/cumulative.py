"""Running sums and products as the array API standard has them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index
from numpy.typing import DTypeLike

from tracegraph.numpy.dispatching.dispatch import as_array, numpy_function
from tracegraph.numpy.dispatching.output import stored
from tracegraph.numpy.joining import concatenate
from tracegraph.numpy.reductions import cumprod, cumsum
from tracegraph.numpy.shapes import atleast_1d

__all__ = ["cumulative_prod", "cumulative_sum"]


@numpy_function
def cumulative_sum(
    x: Any,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
    include_initial: bool = False,
) -> Any:
    """Running sums along an axis, which vectors alone may leave out; dtypes as `sum`.

    Shape: that of `x`; with `include_initial`, one more element along the axis, a zero in front.
    Dtype: 64-bit integers for bools and integers, else that of `x`; or `dtype`.

    Raises:
        AxisError: the axis is out of range.
        ValueError: no axis is given, and there are several.

    >>> tnp.cumulative_sum([1, 2, 3], include_initial=True)
    array([0, 1, 3, 6])
    """
    return _running("cumulative_sum", x, axis, dtype, out, include_initial)


@numpy_function
def cumulative_prod(
    x: Any,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
    include_initial: bool = False,
) -> Any:
    """Running products along an axis, which vectors alone may leave out; dtypes as `prod`.

    Shape: that of `x`; with `include_initial`, one more element along the axis, a one in front.
    Dtype: 64-bit integers for bools and integers, else that of `x`; or `dtype`.

    Raises:
        AxisError: the axis is out of range.
        ValueError: no axis is given, and there are several.

    >>> tnp.cumulative_prod([1, 2, 3], include_initial=True)
    array([1, 1, 2, 6])
    """
    return _running("cumulative_prod", x, axis, dtype, out, include_initial)


def _running(
    name: str, x: Any, axis: int | None, dtype: DTypeLike | None, out: Any, include_initial: bool
) -> Any:
    x = atleast_1d(as_array(x))
    if axis is None and x.ndim != 1:
        raise ValueError(f"numpy.{name} needs an axis for an array of shape {x.shape}")
    axis = normalize_axis_index(axis or 0, x.ndim)
    function, first = (cumsum, 0) if name == "cumulative_sum" else (cumprod, 1)
    if not include_initial:
        return function(x, axis, dtype, out)
    result = function(x, axis, dtype)
    shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    result = concatenate([np.full(shape, first, result.dtype), result], axis)
    return stored(name, result, out, "unsafe")
