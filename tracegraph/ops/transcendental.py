"""Roots, exponentials, logarithms, trigonometric and hyperbolic functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tracegraph.ir.op import Op
from tracegraph.ops.elementwise import texts, ufunc_op
from tracegraph.ops.tricky import NDArray

COST = 8


def _off_the_cuts(dtype: np.dtype[Any], values: NDArray) -> tuple[NDArray, ...]:
    """Complex zeros and ±1, ±i are poles of some function, where C libraries differ."""
    return (values[~np.isin(np.abs(values), (0, 1))],) if dtype.kind == "c" else (values,)


def _function(ufunc: np.ufunc, doc: str, real: str, *, cost: int = COST, half: str = "") -> Op:
    """An op whose complex C++ function is named after the ufunc; `half`, of 16-bit floats."""
    c = texts(f=f"{real}({{0}})", c=f"tg_{ufunc.__name__}({{0}})")
    if half:
        c |= texts(e=f"{half}({{0}})")
    return ufunc_op(ufunc, doc, c, cost=cost, operands=_off_the_cuts)


def _real_function(ufunc: np.ufunc, doc: str, text: str, *, cost: int = COST) -> Op:
    return ufunc_op(ufunc, doc, texts(f=text), cost=cost)


sqrt = _function(np.sqrt, "The square root; of a negative number, NaN.", "sqrt", cost=4)
cbrt = _real_function(np.cbrt, "The cube root.", "cbrt({0})")
hypot = _real_function(np.hypot, "sqrt(x * x + y * y) without overflow.", "tg_hypot({0}, {1})")

exp = _function(np.exp, "e to the power x.", "exp", half="tg_half_exp")
exp2 = _function(np.exp2, "2 to the power x.", "exp2")
expm1 = _function(np.expm1, "exp(x) - 1, precise near 0.", "expm1")
log = _function(np.log, "The natural logarithm.", "log")
log2 = _function(np.log2, "The logarithm to base 2.", "log2")
log10 = _function(np.log10, "The logarithm to base 10.", "log10")
log1p = _function(np.log1p, "log(1 + x), precise near 0.", "log1p")
logaddexp = _real_function(
    np.logaddexp, "log(exp(x) + exp(y)) without overflow.", "tg_logaddexp({0}, {1})"
)
logaddexp2 = _real_function(
    np.logaddexp2, "log2(2**x + 2**y) without overflow.", "tg_logaddexp2({0}, {1})"
)

sin = _function(np.sin, "The sine of an angle in radians.", "sin", half="tg_half_sin")
cos = _function(np.cos, "The cosine of an angle in radians.", "cos", half="tg_half_cos")
tan = _function(np.tan, "The tangent of an angle in radians.", "tg_tan")
arcsin = _function(np.arcsin, "The inverse sine, in radians.", "asin")
arccos = _function(np.arccos, "The inverse cosine, in radians.", "acos")
arctan = _function(np.arctan, "The inverse tangent, in radians.", "atan")
arctan2 = _real_function(
    np.arctan2, "The angle of the point (y, x), x coming first.", "tg_arctan2({0}, {1})"
)
deg2rad = _real_function(np.deg2rad, "Degrees to radians.", "tg_deg2rad({0})", cost=1)
rad2deg = _real_function(np.rad2deg, "Radians to degrees.", "tg_rad2deg({0})", cost=1)

sinh = _function(np.sinh, "The hyperbolic sine.", "tg_sinh")
cosh = _function(np.cosh, "The hyperbolic cosine.", "cosh")
tanh = _function(np.tanh, "The hyperbolic tangent.", "tanh")
arcsinh = _function(np.arcsinh, "The inverse hyperbolic sine.", "tg_arcsinh")
arccosh = _function(np.arccosh, "The inverse hyperbolic cosine.", "tg_arccosh")
arctanh = _function(np.arctanh, "The inverse hyperbolic tangent.", "tg_arctanh")


_erf_of_float64 = np.vectorize(math.erf, otypes=[np.float64])


def _erf(x: NDArray) -> NDArray:
    return np.asarray(_erf_of_float64(x.astype(np.float64))).astype(x.dtype)


erf = ufunc_op(
    np.cbrt, "The error function.", texts(f="erf({0})"), name="erf", reference=_erf, cost=COST
)
"""No ufunc of NumPy: its dtypes are those of the cube root, which takes real numbers only."""
