"""Elementwise functions that are not ufuncs in NumPy: choices, conversions, rounding."""

from __future__ import annotations

import math
import sys
from functools import partial
from operator import index
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike

from tracegraph.arrays.array import Array
from tracegraph.arrays.array_views import is_in_host_memory, read_only_view
from tracegraph.arrays.creation import asarray
from tracegraph.arrays.eager import apply, apply_view
from tracegraph.dtypes import bfloat16
from tracegraph.ir.op import get
from tracegraph.ir.types import type_of
from tracegraph.numpy.dispatching.attached import with_derivative
from tracegraph.numpy.dispatching.dispatch import (
    as_array,
    copied,
    is_python_number,
    lifted,
    numpy_function,
    sized_function,
    unchecked,
)
from tracegraph.numpy.dispatching.output import written
from tracegraph.numpy.dispatching.ufunc_calls import called
from tracegraph.numpy.finding import positions_where
from tracegraph.numpy.shapes import broadcast_to
from tracegraph.numpy.ufuncs import (
    absolute,
    arctan2,
    divide,
    equal,
    isfinite,
    isnan,
    less_equal,
    logical_and,
    logical_or,
    maximum,
    minimum,
    multiply,
    not_equal,
    positive,
    rad2deg,
    rint,
    sin,
    subtract,
    trunc,
)
from tracegraph.tracing.layouts import copy_order, set_order
from tracegraph.tracing.local_writes import LocalWrites
from tracegraph.tracing.operators import ArrayOperators
from tracegraph.tracing.tracer import Tracer
from tracegraph.tracing.views import has_layout

__all__ = [
    "angle", "around", "astype", "clip", "complex_", "erf", "fix", "imag", "isclose", "nan_to_num",
    "real", "round", "round_", "sinc", "where",
]  # fmt: skip

_ERF, _COMPLEX = get("erf"), get("complex")


def erf(x: Any) -> Any:
    """The error function, in the floating-point dtype of `x` (float64 for integers).

    Shape: that of `x`.
    Dtype: floating point; integers become floating point, 64-bit ones float64.

    Raises:
        TypeError: for complex numbers.

    >>> tnp.erf([0.0])
    array([0.])
    """
    return apply(_ERF, x)


def complex_(re: Any, im: Any) -> Any:
    """Complex numbers of real and imaginary parts.

    Shape: that to which the parts broadcast.
    Dtype: complex64 if float32 holds the parts' common dtype, else complex128.

    Raises:
        TypeError: a part is complex.
        ValueError: the shapes do not broadcast.

    >>> tnp.complex_([1.0, 2.0], 0.5)
    array([1.+0.5j, 2.+0.5j])
    """
    return apply(_COMPLEX, re, im)


def astype(x: Any, dtype: DTypeLike, /, *, copy: bool = True, device: str | None = None) -> Any:
    """`x` in another dtype, converted as NumPy does with casting="unsafe".

    With `copy=False`, `x` itself if it has that dtype. With `device`, an Array there.

    Shape: that of `x`.
    Dtype: `dtype`.

    Raises:
        TypeError: there is no such dtype.
        ValueError: there is no such device.

    >>> tnp.astype(np.array([1.7, -1.7]), int)
    array([ 1, -1])
    """
    target = np.dtype(dtype)
    if isinstance(x, ArrayOperators):
        converted = unchecked(x, target)
        converted = copied(converted, "K") if copy and converted is x else converted
        return converted if device is None else converted.to_device(device)
    result = as_array(np.array(x) if copy else x, target)
    return result if device in (None, "cpu") else asarray(result, device=device)


@numpy_function
def real(val: Any) -> Any:
    """The real parts: a view of an array made in the traced function, and real arrays themselves.

    Shape: that of `val`.
    Dtype: that of `val`; for complex numbers, that of a part.

    >>> tnp.real([1+2j, 3])
    array([1., 3.])
    """
    val = as_array(val)
    return _part("real", val) if val.dtype.kind == "c" else val


@numpy_function
def imag(val: Any) -> Any:
    """The imaginary parts: a view as the real parts are; read-only zeros for real arrays.

    Shape: that of `val`.
    Dtype: that of `val`; for complex numbers, that of a part.

    >>> tnp.imag([1+2j, 3])
    array([2., 0.])
    """
    val = as_array(val)
    if val.dtype.kind == "c":
        return _part("imag", val)
    # a product with zero would keep NaNs
    zeros = apply(get("where"), False, val, val.dtype.type(0))
    if isinstance(zeros, Tracer):
        zeros.origin = "the imaginary part of a real array"
    if has_layout(zeros):
        set_order(zeros, copy_order(val, "A"))
    return read_only_view(zeros, "zeros")


def _part(name: str, z: Any) -> Any:
    """The real or imaginary part of complex numbers, through which these are written to."""
    if is_in_host_memory(z):
        return Array.sharing(getattr(z.data, name))
    return apply_view(get(name), z)


@numpy_function
def angle(z: Any, deg: bool = False) -> Any:
    """The angles of complex numbers, in radians or degrees.

    Shape: that of `z`.
    Dtype: floating point; that of a part for complex numbers.

    >>> tnp.angle([1, 1j], deg=True)
    array([ 0., 90.])
    """
    z = as_array(z)
    radians_ = arctan2(imag(z), real(z)) if z.dtype.kind == "c" else arctan2(0, z)
    return rad2deg(radians_) if deg else radians_


@sized_function
def where(
    condition: Any,
    x: Any = None,
    y: Any = None,
    /,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """Elements of `x` where the condition is true, else of `y`, all broadcast together.

    With one argument, where its elements are true: `nonzero(condition)`, with its keywords.

    Shape: that to which all three broadcast.
    Dtype: the common one of `x` and `y`.

    Raises:
        ShapeDependentError: called with a traced condition only, without `size`.
        TypeError: `x` and `y` have no common dtype.
        ValueError: the shapes do not broadcast, or one of `x` and `y` is missing.

    >>> tnp.where([True, False], [1, 2], 0.5)
    array([1. , 0.5])
    """
    if x is None and y is None:
        return positions_where("where", as_array(condition), size, fill_value)
    if x is None or y is None:
        raise ValueError("where takes both or neither of x and y")
    if size is not None or fill_value is not None:
        raise ValueError("size and fill_value are for where(condition), with one argument")
    condition = as_array(condition)
    if condition.dtype != np.bool_:
        condition = not_equal(condition, condition.dtype.type(0))
    x, y = (as_array(v) if isinstance(v, (list, tuple)) else v for v in (x, y))
    return apply(get("where"), condition, _wrapped(x, y), _wrapped(y, x))


def _wrapped(x: Any, other: Any) -> Any:
    """A choice of `where`: a Python int wraps to the integer dtype of an array, as in NumPy."""
    if not is_python_number(x) or is_python_number(other):
        return x
    dtype = type_of(other).dtype
    if dtype.kind not in "iu" or _is_huge(x) or type_of(x).dtype.kind not in "iu":
        return x
    return unchecked(x, dtype)


def _is_huge(x: Any) -> bool:
    return type(x) is int and not -(2**63) <= x < 2**64


@numpy_function
def clip(
    a: Any,
    min: Any = None,
    max: Any = None,
    out: Any = None,
    *,
    a_min: Any = None,
    a_max: Any = None,
    **options: Any,
) -> Any:
    """Elements limited to `min` to `max`, also spelled `a_min=` and `a_max=`; None is not a limit.

    Shape: that to which `a` and the limits broadcast.
    Dtype: the common one of `a` and the limits.

    The keywords of ufuncs, `where=`, `casting=` and so on, are as in NumPy.

    Raises:
        TypeError: a keyword that ufuncs do not have.
        ValueError: the shapes do not broadcast, or a limit is given twice.
        UnsupportedByTracerError: `out` was not made where it is traced.

    >>> tnp.clip([1, 5, 9], 2, 6)
    array([2, 5, 6])
    """
    if not (min is None or a_min is None) or not (max is None or a_max is None):
        raise ValueError("numpy.clip got a limit twice: min is a_min, and max is a_max")
    low, high = a_min if min is None else min, a_max if max is None else max
    a = as_array(a)
    if a.dtype.kind in "iu":
        low, high = _bound(low, a.dtype, is_low=True), _bound(high, a.dtype, is_low=False)
    if low is not None and high is not None:
        if any(getattr(x, "dtype", None) == bfloat16 for x in (a, low, high)):
            return minimum(maximum(a, low), high, out=out, **options)  # NumPy clips it in float32
        return called(_CLIP, partial(apply, get("clip")), (a, low, high), {"out": out, **options})
    if low is not None:
        return maximum(a, low, out=out, **options)
    return positive(a, out=out, **options) if high is None else minimum(a, high, out=out, **options)


_CLIP: np.ufunc = np._core.umath.clip  # type: ignore[attr-defined]
"""NumPy's ufunc of three operands, which has no public name."""


def _bound(bound: Any, dtype: Any, *, is_low: bool) -> Any:
    """A limit of `clip`: None for a Python int that limits nothing, past the dtype's own limits.

    A traced int is limited to the dtype.
    """
    if bound is None or not is_python_number(bound):
        return bound
    limits = np.iinfo(dtype)
    if type(bound) is int:
        limits_nothing = bound <= limits.min if is_low else bound >= limits.max
        return None if limits_nothing else bound
    given = type_of(bound).dtype
    if given.kind not in "iu" or given == dtype:
        return bound
    held = np.iinfo(given)
    low, high = max(int(limits.min), int(held.min)), min(int(limits.max), int(held.max))
    return unchecked(minimum(maximum(bound, low), high), dtype)


@numpy_function
def around(a: Any, decimals: int = 0, out: Any = None) -> Any:
    """Elements rounded to a number of decimals, halves to even.

    Shape: that of `a`.
    Dtype: that of `a`.

    Raises:
        UnsupportedByTracerError: `out` was not made where it is traced.

    >>> tnp.around([0.25, 1.75], 1)
    array([0.2, 1.8])
    """
    a = as_array(a)
    return written("around", _rounded(a, index(decimals)), out, True)


round = round_ = around


def _rounded(a: Any, decimals: int) -> Any:
    if a.dtype.kind == "c":
        return apply(
            _COMPLEX,
            _rounded(apply(get("real"), a), decimals),
            _rounded(apply(get("imag"), a), decimals),
        )
    if a.dtype.kind in "iu":
        if decimals >= 0:
            return copied(a, "K")
        return astype(_rounded(as_array(a, np.float64), decimals), a.dtype)
    if decimals == 0:
        return rint(a)
    places = abs(decimals)
    ten = 10.0**places if places <= sys.float_info.max_10_exp else math.inf
    if decimals > 0:
        return divide(rint(multiply(a, ten)), ten)
    return multiply(rint(divide(a, ten)), ten)


def rounded_to_int(x: Any) -> Any:
    """`round(x)` of a number: a Python int of an Array; of a tracer, an integer as weak as that.

    Raises:
        TypeError: `x` is complex.
    """
    if x.dtype.kind == "c":
        raise TypeError("a complex number is not rounded to an integer; round its real part")
    if not isinstance(x, Tracer):
        return int(x)
    dtype = np.dtype(np.uint64 if x.dtype == np.uint64 else np.int64)
    return apply(get("cast"), x, dtype=dtype, weak=True)


@numpy_function
def fix(x: Any, out: Any = None) -> Any:
    """Elements rounded towards zero.

    Shape: that of `x`.
    Dtype: that of `x`.

    Raises:
        TypeError: for complex numbers.
        UnsupportedByTracerError: `out` was not made where it is traced.

    >>> tnp.fix([1.7, -1.7])
    array([ 1., -1.])
    """
    return written("fix", trunc(x), out, True)


@numpy_function
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Whether `|a - b| <= atol + rtol * |b|`; infinities are close to themselves.

    Shape: that to which `a` and `b` broadcast.
    Dtype: bool.

    Raises:
        ValueError: the shapes do not broadcast.

    >>> tnp.isclose([1.0, 2.0], [1.0 + 1e-9, 2.1])
    array([ True, False])
    """
    a, b = (v if is_python_number(v) else as_array(v) for v in (a, b))
    if type(b) is int or type_of(b).dtype.kind in "biu":
        b = b * 1.0
    rtol, atol = (v if is_python_number(v) else as_array(v) for v in (rtol, atol))
    near = less_equal(absolute(subtract(a, b)), atol + rtol * abs(b))  # Python numbers stay weak
    close = logical_or(logical_and(near, isfinite(b)), equal(a, b))
    if equal_nan:
        close = logical_or(close, logical_and(isnan(a), isnan(b)))
    return close


@numpy_function
def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    """NaNs replaced by `nan`, infinities by `posinf` and `neginf` or the largest finite numbers.

    With `copy=False`, the array is changed in place, as in NumPy.

    Shape: that of `x`.
    Dtype: that of `x`.

    Raises:
        TracerWriteError: `copy` is false, and the array is not one made in the traced function.

    >>> tnp.nan_to_num([1.0, tnp.nan, tnp.inf], posinf=9.0)
    array([1., 0., 9.])
    """
    x = as_array(x)
    if x.dtype.kind in "biu":
        return copied(x, "K") if copy else x
    result = _without_infinities(x, nan, posinf, neginf)
    if copy or not isinstance(x, LocalWrites):
        return result
    x.assign(result, "nan_to_num")
    return x


def _without_infinities(x: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    if x.dtype.kind == "c":
        parts = (apply(get("real"), x), apply(get("imag"), x))
        return apply(_COMPLEX, *(_without_infinities(p, nan, posinf, neginf) for p in parts))
    limits: Any = ml_dtypes.finfo(bfloat16) if x.dtype == bfloat16 else np.finfo(x.dtype)
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    choose, infinity, result = get("where"), x.dtype.type(np.inf), x
    for is_replaced, value in (
        (isnan(x), nan),
        (equal(x, infinity), high),
        (equal(x, -infinity), low),
    ):
        value = _in_dtype(value, x)
        if np.ndim(value):
            value = broadcast_to(lifted(value), x.shape)
        result = apply(choose, is_replaced, value, result)
    return result


def _in_dtype(value: Any, x: Any) -> Any:
    """A replacement in the dtype of an array, if it converts as NumPy's `copyto` has it."""
    if not is_python_number(value):
        given = as_array(value).dtype
        if not np.can_cast(given, x.dtype, "same_kind"):
            raise TypeError(f"nan_to_num cannot put {given} into an array of {x.dtype}")
    return as_array(value, x.dtype)


@numpy_function
def sinc(x: Any) -> Any:
    """sin(pi x) / (pi x), and 1 at 0.

    Shape: that of `x`.
    Dtype: that of `x`; integers become float64.

    >>> tnp.sinc([0.0])
    array([1.])
    """
    x = multiply(np.pi, as_array(x))
    tiny = np.finfo(x.dtype).eps if x.dtype.kind == "f" else 1e-20
    y = apply(get("where"), equal(x, 0), x.dtype.type(tiny), x)
    return with_derivative(divide(sin(y), y), "even_function", x, kind="spherical", n=0)
