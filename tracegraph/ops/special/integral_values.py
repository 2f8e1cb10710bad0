"""The exponential integral Ei, where SciPy's error reaches 180 ulp: beyond 40."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.ops.special.by_scipy import Array, by_scipy

_expi = by_scipy("expi")

_FIRST, _LAST = 40.0, 100.0
_TERMS = 40


def expi(x: Array) -> Array:
    """The principal value of the integral of exp(t) / t up to x, by its expansion from 40."""
    inside = (x >= _FIRST) & (x < _LAST)
    if not inside.any():
        return _expi(x)
    middle = np.where(inside, x, _FIRST)
    expansion: Any = 1.0
    for k in range(_TERMS, 0, -1):
        expansion = 1 + k / middle * expansion
    return np.where(inside, np.exp(middle) / middle * expansion, _expi(x))
