"""Functions of two numbers at poles, halves, large values, infinities and NaN, and SciPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

from tracegraph import special

GRID = np.array([
    *(-np.inf, -7.0, -2.5, -2.0, -1.5, -1.0, -0.5, -0.25, -0.0, 0.0, 0.5, 1.0, 1.5, 2.0, 7.0),
    *(10.0, 100.5, 1e5, 1e18, np.inf, np.nan, -1e18),
])  # fmt: skip
ORDERS = np.arange(6)

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "betaln": special.betaln,
    "beta": special.beta,
    "zeta": special.zeta,
    "polygamma": special.polygamma,
    "gammainc": special.gammainc,
    "gammaincc": special.gammaincc,
    "xlogy": special.xlogy,
    "xlog1py": special.xlog1py,
    "rel_entr": special.rel_entr,
    "kl_div": special.kl_div,
}


def operands(name: str, dtype: Any) -> tuple[Any, Any]:
    """Columns and rows of the grid."""
    first = ORDERS if name == "polygamma" else GRID.astype(dtype)
    return first[:, None], GRID.astype(dtype)


def wanted(name: str, dtype: Any) -> Any:
    """SciPy's values of float64, but where it subtracts large logarithms, or is NaN for 0 and 1."""
    x, y = (np.asarray(z, np.float64) for z in operands(name, dtype))
    with np.errstate(all="ignore"):
        found = np.array(getattr(scipy.special, name)(x, y))
    if name == "zeta":
        found[(x > 1e17) & (y > 1)] = 0
    return found


ROUNDED = {"betaln": 2e-10, "beta": 1e-9, "zeta": 1e-10, "polygamma": 1e-10}
"""Relative errors of SciPy's differences; others are 4e-13."""


def assert_is_scipys(name: str, found: Any, dtype: Any) -> None:
    """Compare values of the grid: all infinities and NaN, and numbers but for rounding."""
    expected = wanted(name, dtype)
    tolerance = ROUNDED.get(name, 4e-13)
    if dtype == np.float32:
        tolerance = 2e-5 if name == "beta" else 2e-6
        with np.errstate(over="ignore"):
            expected = expected.astype(np.float32)
    found = np.asarray(found)
    assert found.dtype == (np.float64 if name == "polygamma" else dtype)
    least = float(np.finfo(dtype).tiny)
    np.testing.assert_allclose(found, expected, tolerance, max(least, 1e-300))


def large_parameters() -> tuple[tuple[Any, Any, Any], Any]:
    """Operands of betainc around its step, and by how much rounding x moves its values."""
    rng = np.random.default_rng(12)
    a, b = 10 ** rng.uniform(-3, 16, (2, 4000))
    mean, deviation = a / (a + b), np.sqrt(a / (a + b) * (b / (a + b)) / (a + b))
    x = np.clip(mean + deviation * rng.uniform(-4, 5, a.size), mean * 1e-3, 1 - (1 - mean) * 1e-3)
    a, b = np.append(a, [2.0, 10.0, 1e20, 1e300]), np.append(b, [1e200, 1e300, 1e50, 7.0])
    x = np.append(x, [1e-300, 1e-300, 1e-30, 1 - 1e-16])
    moved = np.append(2.0**-52 * np.maximum(x[:-4], 1e-300) / deviation, [0, 0, 1e-5, 0])
    return (a, b, x), np.minimum(moved, 1)


def assert_is_hosts_betainc(found: Any) -> None:
    """Compare values of betainc where a parameter is large with those of the host."""
    (a, b, x), moved = large_parameters()
    expected = special.betainc(a, b, x)
    assert (np.abs(np.asarray(found) - expected) <= 1e-9 * expected + moved + 1e-300).all()
