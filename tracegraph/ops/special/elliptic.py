"""Complete elliptic integrals of the parameter m, the square of the modulus."""

from __future__ import annotations

from math import comb, pi
from typing import Any

from tracegraph.ir.derivative import Emitter
from tracegraph.ops.cotangents import number
from tracegraph.ops.special.by_scipy import by_scipy, horner
from tracegraph.ops.special.records import COST, special

_SQUARES = [(comb(2 * n, n) / 4**n) ** 2 for n in range(20)]
_SLOPE_OF_K = [pi / 2 * n * c for n, c in enumerate(_SQUARES)][1:]
_SLOPE_OF_E = [-pi / 2 * n / (2 * n - 1) * c for n, c in enumerate(_SQUARES)][1:]
"""Coefficients in powers of m, for m where the difference of both integrals is nearly 0."""

_NEAR = 0.06


def _slope(f: Emitter, m: Any, series: list[float], formula: Any) -> Any:
    near = f.less(f.absolute(m), number(m, _NEAR))
    zero, one = number(m, 0), number(m, 1)
    return f.where(near, horner(series, f.where(near, m, zero)), formula(f.where(near, one / 2, m)))


def _slope_of_k(f: Emitter, k: Any, m: Any) -> Any:
    return _slope(
        f, m, _SLOPE_OF_K, lambda m: (f.ellipe(m) - (1 - m) * f.ellipk(m)) / (2 * m * (1 - m))
    )


def _slope_of_e(f: Emitter, e: Any, m: Any) -> Any:
    return _slope(f, m, _SLOPE_OF_E, lambda m: (f.ellipe(m) - f.ellipk(m)) / (2 * m))


ellipk = special(
    "ellipk",
    "The complete elliptic integral of the first kind; above 1, NaN.",
    "tg_ellipk({0})",
    by_scipy("ellipk"),
    _slope_of_k,
    cost=4 * COST,
)
ellipe = special(
    "ellipe",
    "The complete elliptic integral of the second kind; above 1, NaN.",
    "tg_ellipe({0})",
    by_scipy("ellipe"),
    _slope_of_e,
    cost=4 * COST,
)
