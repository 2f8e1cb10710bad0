"""The exponential integral Ei, where SciPy's error reaches 180 ulp: beyond 40."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.ops.special.by_scipy import Array, by_scipy, mended

_expi = by_scipy("expi")

_FIRST, _LAST = 40.0, 100.0
_TERMS = 40


def expi(x: Array) -> Array:
    """The principal value of the integral of exp(t) / t up to x, by its expansion from 40."""
    return mended(_expi(x), (x >= _FIRST) & (x < _LAST), _expansion, x)


def _expansion(x: Array) -> Array:
    found: Any = 1.0
    for k in range(_TERMS, 0, -1):
        found = 1 + k / x * found
    return np.asarray(np.exp(x) / x * found)
