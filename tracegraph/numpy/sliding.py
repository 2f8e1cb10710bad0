"""Windows that slide along axes, and sums of products over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from tracegraph import control
from tracegraph.arrays.array_views import read_only_view
from tracegraph.arrays.eager import apply
from tracegraph.errors import UnsupportedByTracerError
from tracegraph.ir.op import get
from tracegraph.ir.types import result_type, type_of
from tracegraph.numpy.dispatching.dispatch import as_array, is_ours, lifted, numpy_function
from tracegraph.numpy.elementwise import where
from tracegraph.numpy.generated import arange
from tracegraph.numpy.joining import surrounded
from tracegraph.numpy.reductions import sum
from tracegraph.numpy.selecting import take
from tracegraph.numpy.shapes import broadcast_to, reshape
from tracegraph.numpy.ufuncs import add, conjugate, greater_equal, less, logical_and, multiply

__all__ = ["convolve", "correlate"]

SHORT = 32
"""The terms that are added up at once: they fuse. Vectors that are longer take a loop."""

_MODES = {"valid": "valid", "same": "same", "full": "full", 0: "valid", 1: "same", 2: "full"}


def sliding_window_view(
    x: Any,
    window_shape: int | Sequence[int],
    axis: int | tuple[int, ...] | None = None,
    *,
    subok: bool = False,
    writeable: bool = False,
) -> Any:
    """The windows of a shape in an array, as new last axes; a read-only view.

    Shape: extents along windowed axes less by the window's less 1, then that of the window.
    Dtype: that of `x`.

    Raises:
        AxisError: an axis is out of range.
        UnsupportedByTracerError: `writeable` with a traced array.
        ValueError: the window is larger than the array, or does not fit the axes.

    >>> tnp.lib.stride_tricks.sliding_window_view(np.array([1, 2, 3, 4]), 3)
    array([[1, 2, 3],
           [2, 3, 4]])
    """
    if not is_ours((x,)):
        return np.lib.stride_tricks.sliding_window_view(
            x, window_shape, axis, subok=subok, writeable=writeable
        )
    if writeable:
        raise UnsupportedByTracerError(
            "writeable=True of numpy.lib.stride_tricks", "index the array"
        )
    x = as_array(x)
    sizes = tuple(window_shape) if np.iterable(window_shape) else (window_shape,)
    if any(n < 0 for n in sizes):
        raise ValueError("`window_shape` cannot contain negative values")
    axes = tuple(range(x.ndim))
    if axis is not None:
        axes = normalize_axis_tuple(axis, x.ndim, allow_duplicate=True)
    if len(sizes) != len(axes):
        raise ValueError(
            f"window_shape must have an extent for each axis: got {sizes} for axes {axes}"
        )
    for k, size in zip(axes, sizes, strict=True):
        if size > x.shape[k]:
            raise ValueError("window shape cannot be larger than input array shape")
        x = apply(get("windows"), x, axis=k, size=size)
    return read_only_view(x, "a view of overlapping windows, which is read-only") if axes else x


@numpy_function
def convolve(a: Any, v: Any, mode: Any = "full") -> Any:
    """The convolution of two vectors: `sum(a[m] * v[n - m])`.

    Shape: one axis; the sum of the lengths less 1. In mode "same", the longer length; in mode
    "valid", the positions at which the vectors overlap completely.
    Dtype: the common one of the vectors.

    Raises:
        ValueError: a vector is empty or has more than one axis, or there is no such mode.

    >>> tnp.convolve([1, 2, 3], [0.0, 1.0, 0.5])
    array([0. , 1. , 2.5, 4. , 1.5])
    """
    a, v = _vectors("convolve", a, v)
    long, short = (v, a) if v.shape[0] > a.shape[0] else (a, v)
    return _correlated("convolve", long, short[::-1], mode)


@numpy_function
def correlate(a: Any, v: Any, mode: Any = "valid") -> Any:
    """The correlation of two vectors: `sum(a[n + k] * conj(v[n]))` for each shift k.

    Shape: one axis; the positions at which the vectors overlap completely. In mode "same", the
    longer length; in mode "full", the sum of the lengths less 1.
    Dtype: the common one of the vectors.

    Raises:
        ValueError: a vector is empty or has more than one axis, or there is no such mode.

    >>> tnp.correlate([1, 2, 3], [0.0, 1.0, 0.5])
    array([3.5])
    """
    a, v = _vectors("correlate", a, v)
    v = conjugate(v) if v.dtype.kind == "c" else v
    if v.shape[0] > a.shape[0]:
        return _correlated("correlate", v, a, mode)[::-1]
    return _correlated("correlate", a, v, mode)


def _vectors(name: str, a: Any, v: Any) -> tuple[Any, Any]:
    """Both as vectors of their common dtype."""
    a, v = as_array(a), as_array(v)
    dtype = result_type(type_of(a), type_of(v))
    for what, x in (("a", a), ("v", v)):
        if x.ndim > 1:
            raise ValueError(f"{name}: {what} of shape {x.shape} has more than one axis")
        if x.size == 0:
            raise ValueError(f"{name}: {what} cannot be empty")
    return reshape(as_array(a, dtype), -1), reshape(as_array(v, dtype), -1)


def _correlated(name: str, a: Any, v: Any, mode: Any) -> Any:
    """Sums of products of `a` with `v`, which is not longer, at each of its positions."""
    if not isinstance(mode, (str, int)):
        raise TypeError(f"{name}: mode must be 'valid', 'same' or 'full', got {mode!r}")
    if mode not in _MODES:
        raise ValueError(f"{name}: mode must be 'valid', 'same' or 'full', got {mode!r}")
    n, m = a.shape[0], v.shape[0]
    start, count = {
        "full": (1 - m, n + m - 1),
        "same": ((m - 1) // 2 - (m - 1), n),
        "valid": (0, n - m + 1),
    }[_MODES[mode]]
    dtype = a.dtype
    if dtype.itemsize == 2 and dtype.kind in "fV":
        a, v = as_array(a, np.float32), as_array(v, np.float32)
    if m <= SHORT:
        result = _term_by_term(a, v, start, count)
    else:
        result = _chunk_by_chunk(a, v, start, count)
    return as_array(result, dtype)


def _term_by_term(a: Any, v: Any, start: int, count: int) -> Any:
    total = None
    for k in range(v.shape[0]):
        first = start + k
        left, right = max(-first, 0), max(first + count - a.shape[0], 0)
        term = multiply(a[first + left : first + count - right], v[k])
        if left or right:
            term = surrounded(term, [(left, right)])
        total = term if total is None else add(total, term)
    return total


def _chunk_by_chunk(a: Any, v: Any, start: int, count: int) -> Any:
    """A loop over `SHORT` terms at a time, so that memory is a multiple of the result alone."""
    n, m = a.shape[0], v.shape[0]
    none = as_array(0, a.dtype)

    def added(k: Any, total: Any) -> Any:
        terms = add(multiply(k, SHORT), arange(SHORT))
        positions = add(reshape(arange(start, start + count), (-1, 1)), terms)
        inside = logical_and(greater_equal(positions, 0), less(positions, n))
        inside = logical_and(inside, less(terms, m))
        products = multiply(take(a, positions, mode="clip"), take(v, terms, mode="clip"))
        return add(total, sum(where(inside, products, none), 1, dtype=a.dtype))

    nothing = broadcast_to(lifted(none), (count,))
    return control.fori_loop(0, -(-m // SHORT), added, nothing)
