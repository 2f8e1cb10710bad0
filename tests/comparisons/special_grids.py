"""Functions of two numbers at poles, halves, large values, infinities and NaN, and SciPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

from tests.helpers.devices import Device
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


# functions of one number

ORDINARY = [
    "erf", "erfc", "erfcx", "erfinv", "erfcinv", "ndtr", "ndtri", "log_ndtr", "gammaln", "gamma",
    "digamma", "i0", "i0e", "i1", "i1e", "j0", "j1", "y0", "y1", "exp1", "expi", "expit", "logit",
    "log_expit", "entr", "ellipk", "ellipe",
]  # fmt: skip
ENDS = np.array([
    *(-np.inf, -1e300, -1e18, -1e5, -7.5, -2.0, -1.0, -0.5, -1e-5, -1e-300, -0.0, 0.0, 1e-300),
    *(1e-5, 0.5, 1.0, 1.5, 2.0, 7.0, 30.0, 100.5, 1e5, np.nan),
])  # fmt: skip
NEAR = np.concatenate([z + np.arange(-3, 4) * 1e-9 for z in (1.0, 2.0, 0.5, 0.3725074107813666)])
"""Zeros of functions, and numbers next to them."""


def numbers(name: str, dtype: Any) -> Any:
    """Numbers all over the range of a function."""
    drawn = np.random.default_rng(4).uniform(-30, 30, 200)
    ends = ENDS if name[-1] not in "01" else ENDS[np.isnan(ENDS) | (np.abs(ENDS) < 1e17)]
    with np.errstate(over="ignore"):
        return np.concatenate([ends, NEAR, drawn, drawn / 30, [np.inf]]).astype(dtype)


def assert_is_hosts(name: str, found: Any, dtype: Any) -> None:
    """Compare values of a function of one number with the host's of float64."""
    x = numbers(name, dtype)
    expected = np.asarray(getattr(special, name)(x.astype(np.float64)))
    found = np.asarray(found)
    assert found.dtype == dtype
    limits = np.finfo(dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = expected.astype(dtype)
        has_zeros = (name in WITH_ZEROS) | ((name == "gammaln") & (x < 0))
        size = np.maximum(np.abs(expected), np.where(has_zeros, 1.0, float(limits.tiny)))
        bound = np.maximum(64 * float(limits.eps) * size, 5e-12 if name in BESSEL else 0)
        if name in ("erfc", "erfcx"):  # SciPy rounds the square of x
            bound = bound * (1 + x.astype(np.float64) ** 2)
        near = np.abs(found.astype(np.float64) - expected) <= bound
    same = (found == rounded) | (np.isnan(found) & np.isnan(rounded)) | (near & np.isfinite(found))
    assert same.all(), (x[~same], found[~same], rounded[~same])


WITH_ZEROS = {"digamma", "expi", "j0", "j1", "y0", "y1", "logit", "ndtri", "erfcinv", "entr"}
"""Functions that are precise to some ulp of 1 near a zero; gammaln has all digits at 1 and 2."""

BESSEL = {"j0", "j1", "y0", "y1"}
"""Functions for which CUDA states an absolute error of 5e-12, beyond 8."""


# on a device

DTYPES = {"float32": np.float32, "float64": np.float64}
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "betainc": (special.betainc, large_parameters()[0]),
    **{
        f"{name} of {dtype}": (function, operands(name, DTYPES[dtype]))
        for name, function in FUNCTIONS.items()
        for dtype in DTYPES
    },
    **{
        f"{name} of {dtype}": (getattr(special, name), (numbers(name, DTYPES[dtype]),))
        for name in ORDINARY
        for dtype in DTYPES
    },
}


def run(device: Device, name: str) -> Any:
    return device.run(name, *PROGRAMS[name][1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_on_the_grid_are_scipys(name: str, dtype: str, device: Device) -> None:
    assert_is_scipys(name, run(device, f"{name} of {dtype}"), DTYPES[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ORDINARY)
def test_values_at_ends_are_those_of_the_host(name: str, dtype: str, device: Device) -> None:
    if name in device.inexact and dtype == "float64":
        pytest.skip("the functions that stand in for CUDA's have 12 digits")
    assert_is_hosts(name, run(device, f"{name} of {dtype}"), DTYPES[dtype])


def test_the_incomplete_beta_function_of_large_parameters(device: Device) -> None:
    assert_is_hosts_betainc(run(device, "betainc"))
