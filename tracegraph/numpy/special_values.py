"""Signs of infinities, imaginary parts of zero, and the Bessel function of order 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.arrays.eager import apply
from tracegraph.errors import UnsupportedByTracerError
from tracegraph.ir.op import get
from tracegraph.numpy.dispatching.dispatch import as_array, numpy_function
from tracegraph.numpy.dispatching.output import written
from tracegraph.numpy.elementwise import imag, real, where
from tracegraph.numpy.reductions import all
from tracegraph.numpy.ufuncs import (
    absolute,
    equal,
    isinf,
    less,
    logical_and,
    logical_not,
    not_equal,
    signbit,
)
from tracegraph.tracing.tracer import Tracer

__all__ = ["i0", "iscomplex", "isneginf", "isposinf", "isreal", "real_if_close"]


@numpy_function
def isreal(x: Any) -> Any:
    """Which elements have an imaginary part of zero.

    Shape: that of `x`.
    Dtype: bool.

    >>> tnp.isreal([1.0, 2j])
    array([ True, False])
    """
    return equal(imag(as_array(x)), 0)


@numpy_function
def iscomplex(x: Any) -> Any:
    """Which elements have an imaginary part other than zero.

    Shape: that of `x`.
    Dtype: bool.

    >>> tnp.iscomplex([1.0, 2j])
    array([False,  True])
    """
    return not_equal(imag(as_array(x)), 0)


@numpy_function
def isposinf(x: Any, out: Any = None) -> Any:
    """Which elements are positive infinity.

    Shape: that of `x`.
    Dtype: bool.

    Raises:
        TypeError: for complex numbers.
        UnsupportedByTracerError: `out` was not made where it is traced.

    >>> tnp.isposinf([1.0, tnp.inf, -tnp.inf])
    array([False,  True, False])
    """
    x = _real("isposinf", x)
    return written("isposinf", logical_and(isinf(x), logical_not(signbit(x))), out, True)


@numpy_function
def isneginf(x: Any, out: Any = None) -> Any:
    """Which elements are negative infinity.

    Shape: that of `x`.
    Dtype: bool.

    Raises:
        TypeError: for complex numbers.
        UnsupportedByTracerError: `out` was not made where it is traced.

    >>> tnp.isneginf([1.0, tnp.inf, -tnp.inf])
    array([False, False,  True])
    """
    x = _real("isneginf", x)
    return written("isneginf", logical_and(isinf(x), signbit(x)), out, True)


def _real(name: str, x: Any) -> Any:
    x = as_array(x)
    if x.dtype.kind == "c":
        raise TypeError(f"{name} is not supported for {x.dtype} values, which have no order")
    return x


@numpy_function
def real_if_close(a: Any, tol: float = 100) -> Any:
    """The real parts, if all imaginary parts are below `tol` times the precision of the dtype.

    The dtype of the result depends on the elements: of a traced array it must be real already.

    Shape: that of `a`.
    Dtype: that of `a`, or of a part.

    Raises:
        UnsupportedByTracerError: `a` is traced, and complex.

    >>> tnp.real_if_close([2.1 + 4e-15j])
    array([2.1])
    """
    a = as_array(a)
    if a.dtype.kind != "c":
        return a
    if isinstance(a, Tracer):
        raise UnsupportedByTracerError(
            "numpy.real_if_close of complex numbers",
            "the dtype of its result depends on the elements; write x.real, or keep x as it is",
        )
    limit = np.finfo(a.dtype).eps * tol if tol > 1 else tol
    return real(a) if bool(all(less(absolute(imag(a)), limit))) else a


@numpy_function
def i0(x: Any) -> Any:
    """The modified Bessel function of the first kind, of order 0; of infinities, NaN.

    Shape: that of `x`.
    Dtype: that of `x`; integers become float64.

    Raises:
        TypeError: for complex numbers.

    >>> tnp.i0(np.array([0.0, 1.0]))
    array([1.        , 1.26606588])
    """
    x = as_array(x)
    if x.dtype.kind == "c":
        raise TypeError("i0 not supported for complex values")
    x = x if x.dtype.kind in "fV" else as_array(x, np.float64)
    return where(isinf(x), x.dtype.type(np.nan), apply(get("i0"), x))  # NumPy's value
