"""Roots, exponentials, logarithms, trigonometric and hyperbolic functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tracegraph.ir.derivative import Emitter, Partials
from tracegraph.ir.op import Op
from tracegraph.ops.cotangents import nonzero, number
from tracegraph.ops.elementwise import texts, ufunc_op
from tracegraph.ops.tricky import NDArray

COST = 8


def _off_the_cuts(dtype: np.dtype[Any], values: NDArray) -> tuple[NDArray, ...]:
    """Complex zeros and ±1, ±i are poles of some function, where C libraries differ."""
    return (values[~np.isin(np.abs(values), (0, 1))],) if dtype.kind == "c" else (values,)


def _function(
    ufunc: np.ufunc,
    doc: str,
    real: str,
    *,
    derivative: Partials,
    cost: int = COST,
    half: str = "",
) -> Op:
    """An op whose complex C++ function is named after the ufunc; `half`, of 16-bit floats."""
    c = texts(f=f"{real}({{0}})", c=f"tg_{ufunc.__name__}({{0}})")
    if half:
        c |= texts(e=f"{half}({{0}})")
    return ufunc_op(ufunc, doc, c, cost=cost, operands=_off_the_cuts, derivative=derivative)


def _real_function(
    ufunc: np.ufunc, doc: str, text: str, *, derivative: Partials, cost: int = COST
) -> Op:
    return ufunc_op(ufunc, doc, texts(f=text), cost=cost, derivative=derivative)


def _over(f: Emitter, x: Any, radius: Any) -> Any:
    """X / radius, and 0 at the origin, where the derivative of this is infinite."""
    return x / nonzero(f, radius)


def weights(exponential: str) -> Partials:
    """The weight of each operand of `logaddexp` in the sum of exponentials.

    Of an infinite sum, the larger operand has all of it; equal ones share.
    """

    def weight(f: Emitter, out: Any, mine: Any, other: Any) -> Any:
        one, half, zero = (number(mine, n) for n in (1, 0.5, 0))
        larger = f.where(f.greater(mine, other), one, zero)
        at_infinity = f.where(f.equal(mine, other), half, larger)
        infinite = f.isinf(out)
        apart = f.where(infinite, zero, mine - out)
        return f.where(infinite, at_infinity, getattr(f, exponential)(apart))

    return Partials(weight, lambda f, o, x, y: weight(f, o, y, x))


def _of_arcsinh(f: Emitter, out: Any, x: Any) -> Any:
    """1 / sqrt(1 + x²); for real numbers by `hypot`, which does not overflow."""
    if x.dtype.kind == "c":
        return 1 / f.sqrt(1 + x * x)
    return 1 / f.hypot(number(x, 1), x)


sqrt = _function(
    np.sqrt,
    "The square root; of a negative number, NaN.",
    "sqrt",
    cost=4,
    derivative=Partials(lambda f, o, x: 0.5 / o),
)
cbrt = _real_function(
    np.cbrt, "The cube root.", "cbrt({0})", derivative=Partials(lambda f, o, x: 1 / (3 * o * o))
)
hypot = _real_function(
    np.hypot,
    "sqrt(x * x + y * y) without overflow.",
    "tg_hypot({0}, {1})",
    derivative=Partials(lambda f, o, x, y: _over(f, x, o), lambda f, o, x, y: _over(f, y, o)),
)

exp = _function(
    np.exp, "e to the power x.", "exp", half="tg_half_exp", derivative=Partials(lambda f, o, x: o)
)
exp2 = _function(
    np.exp2, "2 to the power x.", "exp2", derivative=Partials(lambda f, o, x: math.log(2) * o)
)
expm1 = _function(
    np.expm1, "exp(x) - 1, precise near 0.", "expm1", derivative=Partials(lambda f, o, x: f.exp(x))
)
log = _function(np.log, "The natural logarithm.", "log", derivative=Partials(lambda f, o, x: 1 / x))
log2 = _function(
    np.log2,
    "The logarithm to base 2.",
    "log2",
    derivative=Partials(lambda f, o, x: 1 / (math.log(2) * x)),
)
log10 = _function(
    np.log10,
    "The logarithm to base 10.",
    "log10",
    derivative=Partials(lambda f, o, x: 1 / (math.log(10) * x)),
)
log1p = _function(
    np.log1p,
    "log(1 + x), precise near 0.",
    "log1p",
    derivative=Partials(lambda f, o, x: 1 / (1 + x)),
)
logaddexp = _real_function(
    np.logaddexp,
    "log(exp(x) + exp(y)) without overflow.",
    "tg_logaddexp({0}, {1})",
    derivative=weights("exp"),
)
logaddexp2 = _real_function(
    np.logaddexp2,
    "log2(2**x + 2**y) without overflow.",
    "tg_logaddexp2({0}, {1})",
    derivative=weights("exp2"),
)

sin = _function(
    np.sin,
    "The sine of an angle in radians.",
    "sin",
    half="tg_half_sin",
    derivative=Partials(lambda f, o, x: f.cos(x)),
)
cos = _function(
    np.cos,
    "The cosine of an angle in radians.",
    "cos",
    half="tg_half_cos",
    derivative=Partials(lambda f, o, x: -f.sin(x)),
)
tan = _function(
    np.tan,
    "The tangent of an angle in radians.",
    "tg_tan",
    derivative=Partials(lambda f, o, x: 1 + o * o),
)
arcsin = _function(
    np.arcsin,
    "The inverse sine, in radians.",
    "asin",
    derivative=Partials(lambda f, o, x: 1 / f.sqrt((1 - x) * (1 + x))),
)
arccos = _function(
    np.arccos,
    "The inverse cosine, in radians.",
    "acos",
    derivative=Partials(lambda f, o, x: -1 / f.sqrt((1 - x) * (1 + x))),
)
arctan = _function(
    np.arctan,
    "The inverse tangent, in radians.",
    "atan",
    derivative=Partials(lambda f, o, x: 1 / (1 + x * x)),
)
arctan2 = _real_function(
    np.arctan2,
    "The angle of the point (y, x), x coming first.",
    "tg_arctan2({0}, {1})",
    derivative=Partials(
        lambda f, o, x, y: y / (x * x + y * y), lambda f, o, x, y: -x / (x * x + y * y)
    ),
)
deg2rad = _real_function(
    np.deg2rad,
    "Degrees to radians.",
    "tg_deg2rad({0})",
    cost=1,
    derivative=Partials(lambda f, o, x: math.pi / 180),
)
rad2deg = _real_function(
    np.rad2deg,
    "Radians to degrees.",
    "tg_rad2deg({0})",
    cost=1,
    derivative=Partials(lambda f, o, x: 180 / math.pi),
)

sinh = _function(
    np.sinh, "The hyperbolic sine.", "tg_sinh", derivative=Partials(lambda f, o, x: f.cosh(x))
)
cosh = _function(
    np.cosh, "The hyperbolic cosine.", "cosh", derivative=Partials(lambda f, o, x: f.sinh(x))
)
tanh = _function(
    np.tanh,
    "The hyperbolic tangent.",
    "tanh",
    derivative=Partials(lambda f, o, x: (1 - o) * (1 + o)),
)
arcsinh = _function(
    np.arcsinh, "The inverse hyperbolic sine.", "tg_arcsinh", derivative=Partials(_of_arcsinh)
)
arccosh = _function(
    np.arccosh,
    "The inverse hyperbolic cosine.",
    "tg_arccosh",
    derivative=Partials(lambda f, o, x: 1 / (f.sqrt(x - 1) * f.sqrt(x + 1)), domain=(1.2, 3.0)),
)
arctanh = _function(
    np.arctanh,
    "The inverse hyperbolic tangent.",
    "tg_arctanh",
    derivative=Partials(lambda f, o, x: 1 / ((1 - x) * (1 + x))),
)
