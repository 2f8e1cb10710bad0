"""Functions that make arrays: in a traced function, traced arrays that may be written to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tracegraph.arrays.array import Array
from tracegraph.arrays.array_views import is_in_host_memory
from tracegraph.arrays.creation import asarray as placed_array
from tracegraph.errors import UnsupportedByTracerError
from tracegraph.ir.op import get
from tracegraph.numpy.dispatching.dispatch import as_array, copied, is_python_number, lifted
from tracegraph.numpy.dispatching.families import static_family
from tracegraph.numpy.dispatching.statics import static_parameters
from tracegraph.numpy.eager_arrays import eager
from tracegraph.numpy.shapes import Shape, broadcast_to, extents_of
from tracegraph.tracing.layouts import copy_order, set_order
from tracegraph.tracing.operators import ArrayOperators
from tracegraph.tracing.trace import bind, current_trace
from tracegraph.tracing.tracer import Tracer
from tracegraph.tracing.views import has_layout, is_row_major, order_of

__all__ = [
    "array", "asanyarray", "asarray", "ascontiguousarray", "asfortranarray", "copy", "empty",
    "empty_like", "full", "full_like", "ones", "ones_like", "zeros", "zeros_like",
]  # fmt: skip


def iota(size: int, dtype: DTypeLike) -> Any:
    """0, 1, …: an op while tracing, a NumPy array otherwise."""
    trace = current_trace()
    if trace is None:
        return np.arange(size, dtype=dtype)
    return bind(trace, get("iota"), (), {"size": size, "dtype": np.dtype(dtype)})


@static_parameters
def full(
    shape: Shape,
    fill_value: Any,
    dtype: DTypeLike | None = None,
    order: str | None = "C",
    *,
    device: str | None = None,
    **kwargs: Any,
) -> Any:
    """An array of one value, broadcast to the shape.

    With `device`, an Array there; this holds for all functions that make arrays.

    Shape: `shape`.
    Dtype: that of `fill_value`, or `dtype`.

    Raises:
        ValueError: an extent is negative, or `fill_value` does not broadcast to the shape.
        TracerIndexError: an extent is traced.
        UnsupportedByTracerError: an option of NumPy that is not supported.

    >>> tnp.full(2, 1.5)
    array([1.5, 1.5])
    """
    check_options("full", kwargs)
    return _filled(shape, fill_value, dtype, order_of_new(order), device)


def order_of_new(order: str | None) -> str:
    """The order of a new array, which is by rows, "C", or by columns, "F".

    Raises:
        ValueError: it is neither.
    """
    known = order_of(order)
    if known not in ("C", "F"):
        raise ValueError(f"only 'C' or 'F' order is permitted, got {order!r}")
    return known


def _filled(
    shape: Shape, fill_value: Any, dtype: DTypeLike | None, order: str, device: str | None
) -> Any:
    extents = extents_of(shape)
    traced = is_python_number(fill_value) and isinstance(fill_value, ArrayOperators)
    whole = fill_value.dtype.kind in "iu" if traced else isinstance(fill_value, int)
    if not whole:  # Python ints must fit; NumPy casts all others
        fill_value = as_array(fill_value)
    value = lifted(as_array(fill_value, dtype))
    if not isinstance(value, ArrayOperators):
        return placed(np.full(extents, value, order=order), device)  # type: ignore[call-overload]
    whole = broadcast_to(value, extents)
    return placed(copied(whole, order), device)


def placed(array: Any, device: str | None) -> Any:
    """A new array on a device: NumPy's own on its device "cpu", an Array on others.

    Without a device, one of NumPy's has `.at`.

    Raises:
        UnsupportedByTracerError: while tracing, another device than that of the program.
        ValueError: there is no such device.
    """
    if device is None:
        return eager(array)
    if device == "cpu":
        return array if isinstance(array, Tracer) else np.asarray(array)
    found: Any = placed_array(array, device=device)
    if not isinstance(array, np.ndarray):
        return found
    if has_layout(found):
        set_order(found, copy_order(array, "K"))
    return found.local()


def check_options(name: str, kwargs: dict[str, Any]) -> None:
    """Accept NumPy's other keywords with their default values only."""
    defaults = {
        "like": (None,),
        "subok": (True, False),
    }
    bad = [key for key, value in kwargs.items() if value not in defaults.get(key, ())]
    if bad:
        raise UnsupportedByTracerError(f"numpy.{name} with {', '.join(bad)}")


@static_family
def _new(
    name: str,
    /,
    shape: Shape,
    dtype: DTypeLike | None = None,
    order: str | None = "C",
    *,
    device: str | None = None,
    **kwargs: Any,
) -> Any:
    """An array {of}.

    Shape: `shape`.
    Dtype: `dtype`, float64 by default.

    Raises:
        ValueError: an extent is negative, or there is no such order.
        TracerIndexError: an extent is traced.
        UnsupportedByTracerError: an option of NumPy that is not supported.

    >>> tnp.{name}(2)
    {result}
    """
    element = np.ones if name == "ones" else np.zeros
    return full(shape, element((), dtype), order=order, device=device, **kwargs)


_FLOAT = {"dtype": float}

ones = _new("ones", of="of ones", result="array([1., 1.])")
zeros = _new("zeros", of="of zeros", result="array([0., 0.])", defaults=_FLOAT)
empty = _new(
    "empty",
    of="to be filled: zeros, so that every run gives the same",
    result="array([0., 0.])",
    defaults=_FLOAT,
)


@static_parameters
def full_like(
    a: Any,
    fill_value: Any,
    dtype: DTypeLike | None = None,
    order: str | None = "K",
    subok: bool = True,
    shape: Shape | None = None,
    *,
    device: str | None = None,
    **kwargs: Any,
) -> Any:
    """An array of one value, with shape and dtype of another unless they are given.

    Shape: that of `a`, or `shape`.
    Dtype: that of `a`, or `dtype`.

    Raises:
        ValueError: an extent is negative, or `fill_value` does not broadcast to the shape.
        TracerIndexError: an extent is traced.
        UnsupportedByTracerError: an option of NumPy that is not supported.

    >>> tnp.full_like([1, 2], 7)
    array([7, 7])
    """
    a = as_array(a)
    if type(a) is Array and current_trace() is None and device is None:
        device = a.device
    extents = a.shape if shape is None else shape
    dtype = a.dtype if dtype is None else dtype
    check_options("full_like", kwargs)
    wanted = order_of(order, "K")
    result = _filled(extents, fill_value, dtype, "F" if wanted == "F" else "C", device)
    if has_layout(result) and shape is None and wanted in ("K", "A"):
        set_order(result, copy_order(a, wanted))
    return result


@static_family
def _like(
    name: str,
    /,
    a: Any,
    dtype: DTypeLike | None = None,
    order: str | None = "K",
    subok: bool = True,
    shape: Shape | None = None,
    *,
    device: str | None = None,
    **kwargs: Any,
) -> Any:
    """{what} with shape and dtype of another {array}unless they are given.

    Shape: that of `a`, or `shape`.
    Dtype: that of `a`, or `dtype`.

    Raises:
        ValueError: an extent is negative, or there is no such order.
        TracerIndexError: an extent is traced.
        UnsupportedByTracerError: an option of NumPy that is not supported.

    >>> tnp.{name}([1, 2])
    {result}
    """
    element = 1 if name == "ones_like" else 0
    return full_like(a, element, dtype, order, shape=shape, device=device, **kwargs)


ones_like = _like("ones_like", what="Ones", array="array ", result="array([1, 1])")
zeros_like = _like("zeros_like", what="Zeros", array="array ", result="array([0, 0])")
empty_like = _like(
    "empty_like", what="An array to be filled: zeros,", array="", result="array([0, 0])"
)


def asarray(
    a: Any,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: str | None = None,
    **kwargs: Any,
) -> Any:
    """`a` as an array. While tracing, a NumPy array becomes a constant of the program.

    With `device`, an Array there. With `copy=False`, `a` itself, or memory that it shares.

    Nested lists may hold traced values.

    Shape: that of `a`.
    Dtype: that of `a`, or `dtype`.

    Raises:
        TypeError: the dtype is not supported while tracing.
        UnsupportedByTracerError: an option of NumPy that is not supported.
        ValueError: `copy` is False and a copy is needed, or there is no such order.

    >>> tnp.asarray([1, 2], float)
    array([1., 2.])
    """
    check_options("asarray", kwargs)
    order, converted = order_of(order, "K"), as_array(a, dtype)
    if isinstance(copy, str):
        raise ValueError(f"numpy.asarray: copy is True, False or None, got {copy!r}")
    if copy is not None and not copy:
        _check_shared(_laid_out(converted, order), a, device)
    result = _laid_out(lifted(converted), order)
    result = result if device is None else placed(result, device)
    if not copy or (type(result) is Array and result is not a):
        return result
    return _copied_in(result, order)


def _laid_out(a: Any, order: str) -> Any:
    """An array in an order: itself, or a copy."""
    if order not in ("C", "F"):
        return a
    if isinstance(a, np.ndarray):
        return np.asarray(a, order=order)  # type: ignore[call-overload]
    if is_in_host_memory(a):
        kept = a.data.flags.c_contiguous if order == "C" else a.data.flags.f_contiguous
    else:
        kept = is_row_major(a if order == "C" else a.T)
    return a if kept else _copied_in(a, order)


def _check_shared(result: Any, a: Any, device: str | None) -> None:
    """Raise an error if `result` is a copy of `a`, or will be one on the device."""
    if isinstance(result, np.ndarray):
        moved = device not in (None, "cpu") and current_trace() is None
        if not moved and (result is a or np.may_share_memory(result, np.asarray(a))):
            return
    elif result is a and (device is None or device == a.device):
        return
    raise ValueError(
        f"numpy.asarray: copy=False, but an array of dtype {result.dtype} can only be made of this "
        f"{type(a).__qualname__} by a copy; pass copy=None"
    )


_MOST_AXES = 64
"""Axes that an array of NumPy's has at most."""


def array(
    a: Any,
    dtype: DTypeLike | None = None,
    *,
    copy: bool | None = True,
    order: str | None = "K",
    ndmin: int = 0,
    ndmax: int = _MOST_AXES,
    **kwargs: Any,
) -> Any:
    """`a` as a new array. Nested lists may hold traced values.

    Shape: that of `a`; `ndmin` axes at least, new ones in front.
    Dtype: that of `a`, or `dtype`.

    Raises:
        TypeError: the dtype is not supported while tracing.
        UnsupportedByTracerError: an option of NumPy that is not supported, or nested lists that are
            deeper than `ndmax`.
        ValueError: `ndmin` or `ndmax` is out of range, or there is no such order.

    >>> tnp.array([1, 2], ndmin=2)
    array([[1, 2]])
    """
    check_options("array", kwargs)
    if not 0 <= ndmax <= _MOST_AXES:
        raise ValueError(f"ndmax must be 0 to {_MOST_AXES}, got {ndmax}")
    if ndmax < ndmin:
        raise ValueError(f"ndmin must be <= ndmax ({ndmax}), got {ndmin}")
    result = asarray(a, dtype, order, copy=copy)
    result = eager(result) if copy else result
    if isinstance(a, (list, tuple)) and result.ndim > ndmax:
        raise UnsupportedByTracerError(f"numpy.array of {result.ndim} axes with ndmax={ndmax}")
    missing = ndmin - result.ndim
    return result.reshape((1,) * missing + result.shape) if missing > 0 else result


asanyarray = asarray


def asfortranarray(a: Any, dtype: DTypeLike | None = None, **kwargs: Any) -> Any:
    """`a` as a column-major array: a copy of one that is not.

    Shape: that of `a`; (1,) of a scalar.
    Dtype: that of `a`, or `dtype`.

    Raises:
        TypeError: the dtype is not supported while tracing.
        UnsupportedByTracerError: an option of NumPy that is not supported.

    >>> tnp.asfortranarray([1, 2])
    array([1, 2])
    """
    result = asarray(a, dtype, "F", **kwargs)
    return result.reshape(1) if result.ndim == 0 else result


def ascontiguousarray(a: Any, dtype: DTypeLike | None = None, **kwargs: Any) -> Any:
    """`a` as a row-major array: a copy of a view that is not, as of a transposed one.

    Shape: that of `a`; (1,) of a scalar.
    Dtype: that of `a`, or `dtype`.

    Raises:
        TypeError: the dtype is not supported while tracing.
        UnsupportedByTracerError: an option of NumPy that is not supported.

    >>> tnp.ascontiguousarray([1, 2])
    array([1, 2])
    """
    result = asarray(a, dtype, "C", **kwargs)
    return result.reshape(1) if result.ndim == 0 else result


def copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    """A new array with the same elements.

    `order` says how it is laid out, which `ravel("K")` and views of it show: "C" by rows,
    "F" by columns, "A" by columns if `a` is column-major, "K" as `a` is.

    Shape: that of `a`.
    Dtype: that of `a`.

    Raises:
        ValueError: `order` is something else.

    >>> tnp.copy([1, 2])
    array([1, 2])
    """
    return _copied_in(lifted(as_array(a)), order_of(order, "K"))


def _copied_in(a: Any, order: str) -> Any:
    """A copy that is laid out in an order."""
    return a.copy(order) if type(a) is Array else copied(a, order)
