"""Special functions on the GPU, over their ranges, against those of the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.comparisons.special_grids import (  # noqa: F401 - run here
    PROGRAMS,
    test_the_incomplete_beta_function_of_large_parameters,
    test_values_at_ends_are_those_of_the_host,
    test_values_on_the_grid_are_scipys,
)
from tracegraph import special

RANGES = [
    ("erf", -6, 6), ("erfc", -6, 9), ("erfcx", -9, 60), ("erfinv", -1, 1), ("erfcinv", 0, 2),
    ("ndtr", -12, 8), ("ndtri", 0, 1), ("log_ndtr", -300, 4), ("i0", -80, 80), ("i1", -80, 80),
    ("i0e", -2000, 2000), ("i1e", -2000, 2000), ("gamma", 0, 30), ("gamma", -9, 0),
    ("gammaln", 0, 5000), ("gammaln", -20, 0), ("digamma", 0, 50), ("digamma", -20, 0),
    ("j0", -100, 100), ("j1", -100, 100), ("y0", 0, 100), ("y1", 0, 100), ("exp1", 0, 80),
    ("expi", -50, 80), ("expit", -50, 50), ("logit", 0, 1), ("log_expit", -50, 50), ("entr", 0, 50),
]  # fmt: skip

FROM_ONE = {
    "gammaln",
    "digamma",
    "logit",
    "ndtri",
    "erfcinv",
    "entr",
    "expi",
    "j0",
    "j1",
    "y0",
    "y1",
}
"""Functions with zeros in their ranges, near which they are precise to some ulp of 1."""


BESSEL = ("j0", "j1", "y0", "y1")
"""Functions for which CUDA states an absolute error of 5e-12, beyond 8."""


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("name", "low", "high"), RANGES)
def test_values_are_those_of_the_host(name: str, low: float, high: float, dtype: Any) -> None:
    function = getattr(special, name)
    x = np.random.default_rng(5).uniform(low, high, 20_000).astype(dtype)
    wanted = np.asarray(function(x.astype(np.float64)))
    found = np.asarray(tracegraph.jit(function, device="cuda")(x))
    assert found.dtype == dtype
    bound = 32 * np.finfo(dtype).eps * np.maximum(np.abs(wanted), float(name in FROM_ONE))
    if name in BESSEL:
        bound = np.maximum(bound, 5e-12)
    if name == "erfc":  # SciPy states an error of 5.7e-14
        bound = np.maximum(bound, 6e-14 * np.abs(wanted))
    if low < 0 and name in ("gamma", "gammaln", "digamma"):  # the distance from poles is rounded
        bound *= 1 + 1 / np.abs(x - np.round(x)).astype(np.float64)
    finite = np.abs(wanted) < np.finfo(dtype).max
    apart = np.abs(found.astype(np.float64) - wanted)
    assert (apart <= bound)[finite].all(), x[finite][np.argmax((apart / bound)[finite])]


@pytest.mark.parametrize("n", [1, 2, 5])
def test_polygamma(n: int) -> None:
    x = np.random.default_rng(6).uniform(-6, 30, 5000)
    found = tracegraph.jit(lambda x: special.polygamma(n, x), device="cuda")(x)
    wanted = special.polygamma(n, x)
    nearest = np.abs(x - np.round(x)) ** -(n + 1.0)
    assert (np.abs(np.asarray(found) - wanted) <= 1e-13 * (np.abs(wanted) + nearest)).all()


@pytest.mark.parametrize("name", ["betaln", "beta", "xlogy", "xlog1py", "rel_entr", "kl_div"])
def test_functions_of_two(name: str) -> None:
    x, y = np.random.default_rng(7).uniform(0.01, 100, (2, 5000))
    function = getattr(special, name)
    found = np.asarray(tracegraph.jit(function, device="cuda")(x, y))
    np.testing.assert_allclose(found, function(x, y), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_incomplete_gamma_functions(name: str, dtype: type) -> None:
    rng = np.random.default_rng(8)
    a = 10 ** rng.uniform(-6, 7, 20_000)
    x = np.abs(a * (1 + rng.normal(0, 3, a.size) / np.sqrt(a + 1)))
    a, x = a.astype(dtype), x.astype(dtype)
    function = getattr(special, name)
    found = np.asarray(tracegraph.jit(function, device="cuda")(a, x))
    np.testing.assert_allclose(found, function(a, x), 1e-12 if dtype == np.float64 else 1e-6, 1e-40)


def test_the_incomplete_beta_function() -> None:
    rng = np.random.default_rng(9)
    a, b = 10 ** rng.uniform(-2, 4, (2, 20_000))
    x = rng.uniform(0, 0.95, a.size)
    found = np.asarray(tracegraph.jit(special.betainc, device="cuda")(a, b, x))
    np.testing.assert_allclose(found, special.betainc(a, b, x), 1e-11, 1e-40)


def test_zeta_and_elliptic_integrals() -> None:
    rng = np.random.default_rng(10)
    x, q = 1 + 10 ** rng.uniform(-3, 2, 5000), 10 ** rng.uniform(-2, 4, 5000)
    found = np.asarray(tracegraph.jit(special.zeta, device="cuda")(x, q))
    np.testing.assert_allclose(found, special.zeta(x, q), 1e-13, 1e-321)
    m = np.concatenate([rng.uniform(-1, 1, 5000), -(10 ** rng.uniform(-9, 12, 5000))])
    for function in (special.ellipk, special.ellipe):
        found = np.asarray(tracegraph.jit(function, device="cuda")(m))
        np.testing.assert_allclose(found, function(m), 1e-14)
