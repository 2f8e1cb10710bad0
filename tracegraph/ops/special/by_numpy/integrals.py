"""Exponential integrals, within 10 ulp; expi near its zero at 0.3725 within 10 ulp of 1."""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np

from tracegraph.ops.special.by_numpy.gamma import EULER, horner
from tracegraph.ops.special.by_numpy.scipy_if_there import scipy_if_there

Array = np.ndarray[Any, Any]

_SERIES = [0.0, *(1 / (k * factorial(k)) for k in range(1, 121))]
"""Of Ei(x) - log(x) - Euler's constant in powers of x, for x up to 40."""

_DEPTH = 90
"""Of the continued fraction, for x from 1."""


@scipy_if_there("exp1")
def exp1(x: Array) -> Array:
    """The integral of exp(-t) / t from x on; NaN below 0."""
    small = np.clip(x, 0.0, 1.0)
    series = -EULER - np.log(small) - horner(_SERIES[:22], -small)
    large = np.maximum(x, 1.0)
    fraction = large
    for k in range(_DEPTH, 0, -1):
        fraction = large + k / (1 + k / fraction)
    tail = np.exp(-large) / np.where(np.isinf(large), np.inf, fraction)
    return np.where(x < 0, np.nan, np.where(x < 1, series, tail))


def expi(x: Array) -> Array:
    """The principal value of the integral of exp(t) / t up to x.

    Never by SciPy, whose error reaches 180 ulp near 40.
    """
    small = np.clip(x, 0.0, 40.0)
    series = EULER + np.log(small) + horner(_SERIES, small)
    large = np.maximum(x, 40.0)
    inverse = 1 / large
    expansion: Any = 1.0
    for k in range(40, 0, -1):
        expansion = 1 + (k * inverse) * expansion
    half = np.exp(large / 2)  # its square may be too large before the division
    far = half * (expansion * inverse) * half
    found = np.where(x < 40, series, np.where(x > 1000, np.inf, far))
    return np.where(x < 0, -_exp1_below(x), found)


def _exp1_below(x: Array) -> Array:
    return exp1(np.maximum(-x, 0.0))
