"""Functions made of others: beta, polygamma of any order, and sums of exponentials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import tracegraph.numpy as tnp
from tracegraph.arrays.eager import apply
from tracegraph.errors import UnsupportedByTracerError
from tracegraph.ir.op import get
from tracegraph.numpy.dispatch import as_array
from tracegraph.special.functions import betaln, digamma
from tracegraph.tracing.tracer import Tracer

Axis = int | Sequence[int] | None

_QUIET = np.errstate(divide="ignore", over="ignore", invalid="ignore")
"""Infinite elements give infinities or NaN, without NumPy's warnings."""

_GREATEST_ORDER = 169
"""The factorial of the next one leaves the range of float64."""


def polygamma(n: Any, x: Any) -> Any:
    """The n-th derivative of digamma.

    Args:
        n: the order, from 0 to 169; known while the function is traced.
        x: real numbers.

    Shape: that of `x`.
    Dtype: floating point; integers become floating point, 64-bit ones float64.

    Raises:
        UnsupportedByTracerError: `n` is traced.
        ValueError: `n` is no integer, or out of range.
        TypeError: `x` is complex.

    >>> tracegraph.special.polygamma(1, [1.0, 2.0])
    array([1.64493407, 0.64493407])
    """
    if isinstance(n, Tracer):
        raise UnsupportedByTracerError(
            "special.polygamma of a traced order",
            "the order selects the program; make it a static argument",
        )
    order = int(n)
    if order != n or not 0 <= order <= _GREATEST_ORDER:
        raise ValueError(f"the order of polygamma must be an integer from 0 to 169, got {n!r}")
    x = as_array(x)
    return digamma(x) if order == 0 else apply(get("polygamma"), x, n=order)


def _gamma_sign(x: Any) -> Any:
    """The sign of gamma(x)."""
    odd = tnp.remainder(tnp.floor(x), x.dtype.type(2)) != 0
    return tnp.where((x < 0) & odd, x.dtype.type(-1), x.dtype.type(1))


def beta(a: Any, b: Any) -> Any:
    """gamma(a) gamma(b) / gamma(a + b), where its factors are too large, too.

    Shape: that to which the operands broadcast.
    Dtype: floating point; integers become floating point, 64-bit ones float64.

    Raises:
        TypeError: an operand is complex.
        ValueError: the operands do not broadcast.

    >>> tracegraph.special.beta(2.0, [3.0, 300.0])
    array([8.33333333e-02, 1.10741971e-05])
    """
    logarithm = betaln(a, b)
    a, b = as_array(a, logarithm.dtype), as_array(b, logarithm.dtype)
    return _gamma_sign(a) * _gamma_sign(b) * _gamma_sign(a + b) * tnp.exp(logarithm)


def _shift(a: Any, axis: Axis) -> Any:
    """What to subtract before exponentials: the largest element, as a constant of derivatives."""
    largest = tnp.max(a, axis=axis, keepdims=True)
    finite = tnp.where(tnp.isfinite(largest), largest, a.dtype.type(0))
    return apply(get("stop_gradient"), finite)


def _floating(x: Any) -> Any:
    x = as_array(x)
    return as_array(x, np.float64) if x.dtype.kind in "biu" else x


@_QUIET
def logsumexp(a: Any, axis: Axis = None, b: Any = None, keepdims: bool = False) -> Any:
    """log(sum(b * exp(a))) without overflow; NaN where the sum is negative.

    Args:
        a: real numbers.
        axis: the axes to sum over; all by default.
        b: factors, broadcast to `a`.
        keepdims: whether the axes stay, with extent 1.

    Dtype: that of `a`; float64 for integers.

    Raises:
        AxisError: an axis is out of range.

    >>> tracegraph.special.logsumexp([1000.0, 1000.0])
    np.float64(1000.6931471805599)
    """
    a = _floating(a)
    if b is not None:
        b = as_array(b, a.dtype)
        a = tnp.where(b == 0, a.dtype.type(-np.inf), a)
    shift = _shift(a, axis)
    terms = tnp.exp(a - shift)
    total = tnp.sum(terms if b is None else b * terms, axis=axis, keepdims=True)
    found = tnp.log(total) + shift
    return found if keepdims else tnp.sum(found, axis=axis)


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
