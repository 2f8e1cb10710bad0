"""Functions made of others: beta, polygamma of any orders, and sums of exponentials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import tracegraph.numpy as tnp
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.numpy.dispatching.attached import with_derivative
from tracegraph.numpy.dispatching.dispatch import as_array
from tracegraph.numpy.reductions import reduced_axes
from tracegraph.special.functions import betaln, digamma, gamma, zeta

__all__ = ["beta", "log_softmax", "logsumexp", "polygamma", "softmax"]

Axis = int | Sequence[int] | None

_QUIET = np.errstate(divide="ignore", over="ignore", invalid="ignore")
"""Infinite elements give infinities or NaN, without NumPy's warnings."""

_GREATEST_ORDER = 169
"""The factorial of the next one leaves the range of float64."""


def polygamma(n: Any, x: Any) -> Any:
    """The n-th derivative of digamma.

    Args:
        n: orders from 0; one order, known while the function is traced, may be up to 169.
        x: real numbers.

    Shape: that to which both broadcast; that of `x` for one order.
    Dtype: floating point; integers become floating point, 64-bit ones float64.

    Raises:
        ValueError: orders that are known are no integers, or out of range.
        TypeError: `x` is complex.
        DerivativeError: one in `n` is needed.

    >>> tracegraph.special.polygamma(1, [1.0, 2.0])
    array([1.64493407, 0.64493407])
    >>> tracegraph.special.polygamma([0, 1, 2], 1.0)
    array([-0.57721566,  1.64493407, -2.40411381])
    """
    x = as_array(x)
    if isinstance(n, (int, float, np.integer, np.floating)):
        order = int(n) if np.isfinite(n) else -1
        if order != n or not 0 <= order <= _GREATEST_ORDER:
            raise ValueError(f"the order of polygamma must be an integer from 0 to 169, got {n!r}")
        return digamma(x) if order == 0 else apply(get("polygamma"), x, n=order)
    n = as_array(n)
    if isinstance(n, np.ndarray) and not np.all((n >= 0) & (n == np.floor(n))):
        raise ValueError(f"the orders of polygamma must be integers from 0, got {n!r}")
    return _polygamma(n, x)


@_QUIET
def _polygamma(n: Any, x: Any) -> Any:
    """By zeta, in float64, since the factorial of n is soon too large for float32."""
    dtype = apply(get("hypot"), *(y.reshape(-1)[:0] for y in (n, x))).dtype
    order, wide = as_array(n, np.float64), as_array(x, np.float64)
    sign = tnp.where(tnp.remainder(order, 2.0) == 1, 1.0, -1.0)
    found = sign * gamma(order + 1) * zeta(order + 1, wide)
    return as_array(tnp.where(order == 0, digamma(wide), found), dtype)


def _gamma_sign(x: Any) -> Any:
    """The sign of gamma(x)."""
    odd = tnp.remainder(tnp.floor(x), x.dtype.type(2)) != 0
    return tnp.where((x < 0) & odd, x.dtype.type(-1), x.dtype.type(1))


def _is_pole(x: Any) -> Any:
    """Whether gamma has a pole at x."""
    return (x <= 0) & (x == tnp.floor(x))


@_QUIET
def beta(a: Any, b: Any) -> Any:
    """gamma(a) gamma(b) / gamma(a + b), also where its factors are too large.

    Infinite at the poles of a factor, unless that of the divisor makes the quotient finite.

    Shape: that to which the operands broadcast.
    Dtype: floating point; integers become floating point, 64-bit ones float64.

    Raises:
        TypeError: an operand is complex.
        ValueError: the operands do not broadcast.

    >>> tracegraph.special.beta([2.0, 2.0, -7.0], [3.0, 300.0, 1.0])
    array([ 8.33333333e-02,  1.10741971e-05, -1.42857143e-01])
    """
    logarithm = betaln(a, b)
    a, b = as_array(a, logarithm.dtype), as_array(b, logarithm.dtype)
    one, two = logarithm.dtype.type(1), logarithm.dtype.type(2)
    pole = _is_pole(a)
    odd = tnp.remainder(tnp.where(pole, b, a), two) == 1
    is_integer = tnp.where(pole, a, b) > logarithm.dtype.type(-(2.0**31))  # SciPy's greatest ones
    of_poles = tnp.where(odd & (a + b < 1) & is_integer, -one, one)
    sign = _gamma_sign(a) * _gamma_sign(b) * _gamma_sign(a + b)
    return tnp.where(pole | _is_pole(b), of_poles, sign) * tnp.exp(logarithm)


def _shift(a: Any, axis: Axis) -> Any:
    """What to subtract before exponentials: the largest element, as a constant of derivatives."""
    largest = tnp.max(a, axis=axis, keepdims=True, initial=a.dtype.type(-np.inf))
    finite = tnp.where(tnp.isfinite(largest), largest, a.dtype.type(0))
    return apply(get("stop_gradient"), finite)


def _floating(x: Any) -> Any:
    x = as_array(x)
    return as_array(x, np.float64) if x.dtype.kind in "biu" else x


@_QUIET
def logsumexp(a: Any, axis: Axis = None, b: Any = None, keepdims: bool = False) -> Any:
    """log(sum(b * exp(a))) without overflow; NaN where the sum is negative.

    The largest terms are summed apart from all others: of logsumexp([0, -40]) only those count.

    Args:
        a: real numbers.
        axis: the axes to sum over; all by default.
        b: factors; both broadcast.
        keepdims: whether the axes stay, with extent 1.

    The derivative in `b` is that of the exponentials, also where a factor is 0. Where all
    logarithms are those of 0, it is 0.

    Dtype: that of the product; float64 for integers.

    Raises:
        AxisError: an axis is out of range.

    >>> tracegraph.special.logsumexp([1000.0, 1000.0])
    np.float64(1000.6931471805599)
    >>> tracegraph.special.logsumexp([0.0, -40.0])
    np.float64(4.248354255291589e-18)
    """
    a = _floating(a)
    if b is not None:
        b = as_array(b, a.dtype) if isinstance(b, (bool, int, float)) else as_array(b)
        dtype = (a.reshape(-1)[:0] * b.reshape(-1)[:0]).dtype
        a, b = tnp.broadcast_arrays(as_array(a, dtype), as_array(b, dtype))
    operands = (a,) if b is None else (a, b)
    if b is not None:
        a = tnp.where(b == 0, a.dtype.type(-np.inf), a)
    zero, least = a.dtype.type(0), a.dtype.type(-np.inf)
    top = apply(get("stop_gradient"), tnp.max(a, axis=axis, keepdims=True, initial=least))
    shift = tnp.where(tnp.isfinite(top), top, zero)
    terms = tnp.exp(a - shift)
    terms = terms if b is None else b * terms
    largest = a == top
    rest = tnp.sum(tnp.where(largest, zero, terms), axis=axis, keepdims=True)
    if b is None:  # the difference is rounded as the sum is
        total = tnp.sum(terms, axis=axis, keepdims=True)
        most = total - rest
    else:
        most = tnp.sum(tnp.where(largest, terms, zero), axis=axis, keepdims=True)
        total = most + rest
    apart = (most != 0) & tnp.isfinite(most)
    ratio = tnp.where(apart, rest / tnp.where(apart, most, a.dtype.type(1)), zero)
    logarithm = tnp.log1p(ratio) + tnp.log(tnp.where(apart, most, total)) + shift
    axes = tuple([k - a.ndim for k in reduced_axes(a, axis)])
    logarithm = with_derivative(logarithm, "logsumexp", *operands, axes=axes)
    return logarithm if keepdims else tnp.sum(logarithm, axis=axis)


@_QUIET
def softmax(x: Any, axis: Axis = None) -> Any:
    """exp(x) / sum(exp(x)) over the axes, all by default.

    Shape: that of `x`.
    Dtype: that of `x`; float64 for integers.

    Raises:
        AxisError: an axis is out of range.

    >>> tracegraph.special.softmax([1.0, 1.0, -np.inf])
    array([0.5, 0.5, 0. ])
    """
    x = _floating(x)
    terms = tnp.exp(x - _shift(x, axis))
    return terms / tnp.sum(terms, axis=axis, keepdims=True)


@_QUIET
def log_softmax(x: Any, axis: Axis = None) -> Any:
    """The logarithm of softmax, finite where that is zero.

    Shape: that of `x`.
    Dtype: that of `x`; float64 for integers.

    Raises:
        AxisError: an axis is out of range.

    >>> tracegraph.special.log_softmax([1000.0, 0.0])
    array([    0., -1000.])
    """
    x = _floating(x)
    apart = x - _shift(x, axis)
    return apart - tnp.log(tnp.sum(tnp.exp(apart), axis=axis, keepdims=True))
