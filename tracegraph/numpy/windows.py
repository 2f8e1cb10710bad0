"""Windows of a static size at a traced position, as in JAX."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from tracegraph.arrays.creation import asarray
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.numpy.dispatching.dispatch import as_array, lifted
from tracegraph.numpy.ufuncs import add
from tracegraph.tracing.operators import ArrayOperators

__all__ = ["dynamic_slice", "dynamic_update_slice"]


def dynamic_slice(x: Any, starts: Any, sizes: Sequence[int]) -> Any:
    """The window of static `sizes` that begins at `starts`, which may be traced.

    A negative start counts from the end. A window that still does not fit is moved to where it
    fits.

    Args:
        x: an array.
        starts: an integer for each axis, in a sequence or a vector.
        sizes: the extents of the window.

    Shape: `sizes`.
    Dtype: that of `x`.

    Raises:
        TypeError: a start is not an integer.
        ValueError: there is not one start and one size for each axis, or the window is larger than
            `x`.

    >>> import tracegraph
    >>> tracegraph.dynamic_slice(tracegraph.asarray([5, 6, 7, 8]), (1,), (2,))
    Array([6, 7], dtype=int64)
    """
    x = _ours(x)
    extents = tuple(map(index, sizes))
    _check_fit("dynamic_slice", x, extents)
    return apply(get("dynamic_slice"), x, *_starts(x, starts), sizes=extents)


def dynamic_update_slice(x: Any, update: Any, starts: Any) -> Any:
    """`x` with the window that begins at `starts`, which may be traced, replaced by `update`.

    A negative start counts from the end. A window that still does not fit is moved to where it
    fits. `x` itself stays as it is.

    Args:
        x: an array.
        update: the window, which is cast to the dtype of `x`.
        starts: an integer for each axis, in a sequence or a vector.

    Shape: that of `x`.
    Dtype: that of `x`.

    Raises:
        TypeError: a start is not an integer.
        ValueError: there is not one start for each axis, or the window is larger than `x`.

    >>> import tracegraph
    >>> tracegraph.dynamic_update_slice(tracegraph.asarray([5, 6, 7, 8]), [0, 0], (-2,))
    Array([5, 6, 0, 0], dtype=int64)
    """
    x = _ours(x)
    update = lifted(as_array(update, x.dtype))
    _check_fit("dynamic_update_slice", x, update.shape)
    return apply(get("dynamic_update_slice"), x, update, *_starts(x, starts))


def _check_fit(name: str, x: Any, sizes: tuple[int, ...]) -> None:
    if len(sizes) != x.ndim:
        raise ValueError(
            f"{name} needs one size for each of the {x.ndim} axes of x, got a window of shape "
            f"{sizes}"
        )
    if any(not 0 <= size <= extent for size, extent in zip(sizes, x.shape, strict=True)):
        raise ValueError(
            f"{name}: a window of shape {sizes} does not fit into x of shape {x.shape}"
        )


def _ours(x: Any) -> Any:
    """An array of ours, or a tracer while tracing."""
    x = lifted(as_array(x))
    return x if isinstance(x, ArrayOperators) else asarray(x)


def _starts(x: Any, starts: Any) -> list[Any]:
    """A start for each axis, negative ones counted from the end."""
    if not isinstance(starts, (tuple, list)):
        starts = as_array(starts)
        if starts.ndim != 1:
            raise ValueError(
                f"starts must be a sequence or a vector of one integer for each axis, got shape "
                f"{starts.shape}"
            )
        starts = [starts[k] for k in range(starts.size)]
    if len(starts) != x.ndim:
        raise ValueError(f"needs one start for each of the {x.ndim} axes, got {len(starts)}")
    return [_from_the_end(as_array(s), n) for s, n in zip(starts, x.shape, strict=True)]


def _from_the_end(start: Any, extent: int) -> Any:
    if start.dtype.kind not in "iu" or start.ndim:
        raise TypeError(
            f"a start must be an integer scalar, got {start.dtype} of shape {start.shape}"
        )
    if start.dtype.kind == "u":
        return start
    start = as_array(start, np.int64)
    return apply(get("where"), start < 0, add(start, extent), start)
