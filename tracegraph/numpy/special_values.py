"""Signs of infinities, imaginary parts of zero, and the Bessel function of order 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.errors import UnsupportedByTracerError
from tracegraph.numpy.dispatch import as_array, numpy_function
from tracegraph.numpy.elementwise import imag, real, where
from tracegraph.numpy.output import written
from tracegraph.numpy.reductions import all
from tracegraph.numpy.ufuncs import (
    absolute,
    divide,
    equal,
    exp,
    isinf,
    less,
    less_equal,
    logical_and,
    logical_not,
    multiply,
    not_equal,
    signbit,
    sqrt,
)
from tracegraph.tracing.tracer import Tracer


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
    """The modified Bessel function of the first kind, of order 0.

    Chebyshev expansions for 0 to 8 and above, of the Cephes library.

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
    x = absolute(x if x.dtype.kind == "f" else as_array(x, np.float64))
    small = multiply(exp(x), _chebyshev(x / 2.0 - 2.0, _TO_8))
    large = divide(multiply(exp(x), _chebyshev(32.0 / x - 2.0, _FROM_8)), sqrt(x))
    return where(less_equal(x, 8.0), small, large)


def _chebyshev(x: Any, coefficients: tuple[float, ...]) -> Any:
    """A Chebyshev series by Clenshaw's recurrence, the highest order first."""
    last: Any = coefficients[0]
    before: Any = 0.0
    before_that: Any = 0.0
    for coefficient in coefficients[1:]:
        before_that, before = before, last
        last = x * before - before_that + coefficient
    return 0.5 * (last - before_that)


_TO_8 = (
    -4.4153416464793395e-18,
    3.3307945188222384e-17,
    -2.431279846547955e-16,
    1.715391285555133e-15,
    -1.1685332877993451e-14,
    7.676185498604936e-14,
    -4.856446783111929e-13,
    2.95505266312964e-12,
    -1.726826291441556e-11,
    9.675809035373237e-11,
    -5.189795601635263e-10,
    2.6598237246823866e-09,
    -1.300025009986248e-08,
    6.046995022541919e-08,
    -2.670793853940612e-07,
    1.1173875391201037e-06,
    -4.4167383584587505e-06,
    1.6448448070728896e-05,
    -5.754195010082104e-05,
    0.00018850288509584165,
    -0.0005763755745385824,
    0.0016394756169413357,
    -0.004324309995050576,
    0.010546460394594998,
    -0.02373741480589947,
    0.04930528423967071,
    -0.09490109704804764,
    0.17162090152220877,
    -0.3046826723431984,
    0.6767952744094761,
)
_FROM_8 = (
    -7.233180487874754e-18,
    -4.830504485944182e-18,
    4.46562142029676e-17,
    3.461222867697461e-17,
    -2.8276239805165836e-16,
    -3.425485619677219e-16,
    1.7725601330565263e-15,
    3.8116806693526224e-15,
    -9.554846698828307e-15,
    -4.150569347287222e-14,
    1.54008621752141e-14,
    3.8527783827421426e-13,
    7.180124451383666e-13,
    -1.7941785315068062e-12,
    -1.3215811840447713e-11,
    -3.1499165279632416e-11,
    1.1889147107846439e-11,
    4.94060238822497e-10,
    3.3962320257083865e-09,
    2.266668990498178e-08,
    2.0489185894690638e-07,
    2.8913705208347567e-06,
    6.889758346916825e-05,
    0.0033691164782556943,
    0.8044904110141088,
)
