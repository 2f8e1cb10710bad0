"""The gamma function, its logarithm, the derivatives of that, the beta function, and zeta."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from tracegraph.ir.derivative import Emitter, NoDerivativeError, Rewrite
from tracegraph.ir.op import Elementwise, Op, Sample, register
from tracegraph.ir.types import ArrayType
from tracegraph.ops.cotangents import number
from tracegraph.ops.elementwise import native_dtypes, quiet, resolve, texts
from tracegraph.ops.special import gamma_values as values
from tracegraph.ops.special.by_scipy import by_scipy, horner
from tracegraph.ops.special.records import COST, in_float64, special
from tracegraph.ops.tricky import NDArray, tricky

_LARGE = 20.0
_OF_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
"""Coefficients of digamma(x) - log(x) + 1 / (2 x) in powers of -1 / x² (Abramowitz and Stegun,
6.3.18)."""


def _digamma_drop(f: Emitter, a: Any, b: Any) -> Any:
    """digamma(a) - digamma(a + b), which cancels if a is large, but for its expansion."""
    total = a + b
    is_large = f.logical_and(f.greater(a, number(a, _LARGE)), f.greater(total, number(a, _LARGE)))
    near = f.digamma(a) - f.digamma(total)
    one = number(a, 1)
    a, b, total = (f.where(is_large, x, one) for x in (a, b, total))
    u, v = 1 / a, 1 / total
    gap = b * u * v
    first, *rest = _OF_DIGAMMA
    higher = [f.multiply(x * x, x * x) * horner(rest, x * x) for x in (u, v)]
    far = -f.log1p(b * u) - gap * (0.5 + first * (u + v)) - (higher[0] - higher[1])
    return f.where(is_large, far, near)


gammaln = special(
    "gammaln",
    "The logarithm of the magnitude of the gamma function.",
    "tg_gammaln({0})",
    values.gammaln,
    lambda f, o, x: f.digamma(x),
)
gamma = special(
    "gamma",
    "The gamma function.",
    "tgamma({0})",
    by_scipy("gamma"),
    lambda f, o, x: o * f.digamma(x),
)
digamma = special(
    "digamma",
    "The logarithmic derivative of the gamma function.",
    "tg_digamma({0})",
    by_scipy("psi"),
    lambda f, o, x: f.polygamma(x, n=1),
)
betaln = special(
    "betaln",
    "The logarithm of the magnitude of the beta function.",
    "tg_betaln({0}, {1})",
    values.betaln,
    lambda f, o, a, b: _digamma_drop(f, a, b),
    lambda f, o, a, b: _digamma_drop(f, b, a),
    cost=4 * COST,
)


def _no_slope(f: Emitter, out: Any, x: Any, q: Any) -> NoReturn:
    """An error that says why there is none."""
    raise NoDerivativeError("zeta has no derivative in the exponent x, only in q")


zeta = special(
    "zeta",
    "The sum of (q + k)**-x over k from 0; NaN for x below 1, or q below 0 unless x is an integer.",
    "tg_zeta({0}, {1})",
    values.zeta,
    _no_slope,
    lambda f, o, x, q: -x * f.zeta(x + 1, q),
    cost=4 * COST,
)


# derivatives of digamma


def _dtypes(x: ArrayType, *, n: int) -> tuple[np.dtype[Any]]:
    return (resolve(np.cbrt, [x], "polygamma")[0],)


def _type(x: ArrayType, *, n: int) -> ArrayType:
    if n < 1:
        raise ValueError(f"polygamma: the order must be at least 1, got {n}")
    if x.dtype not in native_dtypes(np.cbrt):
        raise TypeError(f"polygamma takes real numbers of floating point, got {x}")
    return ArrayType(x.dtype, x.shape)


def _values(x: Any, *, n: int) -> NDArray:
    (dtype,) = _dtypes(ArrayType(np.asarray(x).dtype, np.shape(x)), n=n)
    return in_float64(lambda y: values.polygamma(n, y))(np.asarray(x, dtype))


def _samples() -> Sequence[Sample]:
    dtypes = native_dtypes(np.cbrt)
    return [Sample((tricky(dtype),), {"n": n}) for dtype in dtypes for n in (1, 2, 5)]


def _prepare(f: Emitter, out: Any, x: Any, *, n: int) -> tuple[Any]:
    """Polygamma of the next order times the tangent."""
    return (f.polygamma(x, n=n + 1),)


def _apply(f: Emitter, values: Sequence[Any], tangents: Sequence[Any], *, n: int) -> Any:
    return f.multiply(values[0], tangents[0])


polygamma = register(
    Op(
        "polygamma",
        "The n-th derivative of digamma, n from 1.",
        _type,
        quiet(_values),
        Elementwise(texts(f="tg_polygamma<{n}>({0})"), 4 * COST),
        _samples,
        _dtypes,
        Rewrite(_prepare, _apply),
    )
)
