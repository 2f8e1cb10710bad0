"""Running sums and products as the array API standard has them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index
from numpy.typing import DTypeLike

from tracegraph.numpy.dispatching.dispatch import as_array
from tracegraph.numpy.dispatching.families import numpy_family
from tracegraph.numpy.dispatching.output import stored
from tracegraph.numpy.joining import concatenate
from tracegraph.numpy.reductions import cumprod, cumsum
from tracegraph.numpy.shapes import atleast_1d

__all__ = ["cumulative_prod", "cumulative_sum"]


@numpy_family
def _cumulative(
    name: str,
    x: Any,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
    include_initial: bool = False,
) -> Any:
    """Running {folds} along an axis, which vectors alone may leave out; dtypes as `{fold}`.

    Shape: that of `x`; with `include_initial`, one more element along the axis, a {first} in front.
    Dtype: 64-bit integers for bools and integers, else that of `x`; or `dtype`.

    Raises:
        AxisError: the axis is out of range.
        ValueError: no axis is given, and there are several.

    >>> tnp.{name}([1, 2, 3], include_initial=True)
    {result}
    """
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


cumulative_sum = _cumulative(
    "cumulative_sum", folds="sums", fold="sum", first="zero", result="array([0, 1, 3, 6])"
)
cumulative_prod = _cumulative(
    "cumulative_prod", folds="products", fold="prod", first="one", result="array([1, 1, 2, 6])"
)
