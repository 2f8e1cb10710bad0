"""Special functions where SciPy's values are infinite, NaN, or lose their digits."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import scipy.special

import tracegraph
from tests.comparisons.special_grids import ENDS, FUNCTIONS, ORDINARY, assert_is_scipys, operands
from tracegraph import special

each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@each_dtype
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_on_the_grid_are_scipys(name: str, dtype: Any) -> None:
    x, y = operands(name, dtype)
    assert_is_scipys(name, FUNCTIONS[name](x, y), dtype)
    jitted = tracegraph.jit(FUNCTIONS[name], device="host")
    assert_is_scipys(name, jitted(x, y), dtype)


MENDED: dict[str, list[float]] = {
    **{name: [-np.inf] for name in ("i0", "i1")},
    **{name: [-np.inf, 1e5, -1e5, -1e18, -1e300] for name in ("j0", "j1", "y0", "y1")},
    "log_ndtr": [30.0],
    "expi": [100.5],
}
"""Where SciPy is NaN, or has lost digits."""


@pytest.mark.parametrize("name", ORDINARY)
def test_ends_are_scipys(name: str) -> None:
    x = np.setdiff1d(ENDS, MENDED.get(name, []))
    with np.errstate(all="ignore"):
        wanted = getattr(scipy.special, "psi" if name == "digamma" else name)(x)
    np.testing.assert_allclose(getattr(special, name)(x), wanted, 3e-14, 1e-300)


EXACT: list[tuple[str, tuple[float, ...], float, float]] = [
    ("ndtr", (-34.5,), 4.0107289665772619693e-261, 1e-15),
    ("erfcinv", (5e-324,), 27.213293210812948815, 1e-15),
    ("gammaln", (0.999999999,), 5.7721564939922597e-10, 1e-15),
    ("gammaln", (1.999999999,), -4.22784369757332791e-10, 1e-15),
    ("gammaln", (1.0001,), -5.7713342220471268e-05, 1e-15),
    ("gammaln", (2.000000001,), 4.2278437040226696e-10, 1e-15),
    ("j0", (1e18,), -4.9343870367901409e-10, 1e-14),
    ("j1", (-12345678.25,), 0.00012682306283828894, 1e-13),
    ("y0", (1e6,), -0.00072596852233517917, 1e-13),
    ("y1", (12345678.25,), 0.00018836697024240416, 1e-13),
    ("expi", (41.5,), 26064259707745415.447, 1e-15),
    ("expi", (60.25,), 2.4756109450085230359e24, 1e-15),
    ("expi", (100.5,), 4.4546864294667910897e41, 1e-14),
    ("betaln", (0.5, 1e5), -5.1840965395604141282, 1e-15),
    ("betaln", (-10000.25, 0.75), -6.3579288618802469556, 1e-14),
    ("betaln", (20000.0, -10000.25), 13858.564188615562813, 1e-15),
    ("betaln", (-10000.25, -3.5), 30.928059491168773207, 1e-14),
    ("betaln", (-100.25, 3.125), -14.167988409515409925, 1e-14),
    ("betaln", (3.125, -2.25), 1.2811744917020371707, 2e-15),
    ("betaln", (-5e-324, -5e-324), 744.44007192138126 + np.log(2), 1e-15),
    ("beta", (1.0, 1e5), 1e-5, 1e-15),
    ("beta", (1.0, -7.0), -1 / 7, 1e-15),
    ("zeta", (7.0, -2.5), 0.00019216403826393778095, 1e-15),
    ("zeta", (3.0, -1000.25), -62.01255286134892207, 1e-15),
    ("zeta", (2.0, -1e15 - 0.5), np.pi**2, 1e-15),
    ("polygamma", (20, -1.5), -10709198259.124132, 1e-14),
    ("gammainc", (95390000.0, 95310000.0), 1.2709281228621127e-16, 1e-13),
    ("gammainc", (1e308, 3.0), 0.0, 0.0),
    ("gammaincc", (1e308, 3.0), 1.0, 0.0),
    ("gammaincc", (1e-310, 3.0), 1.3048381094197e-312, 1e-11),
    ("betainc", (1e8, 3e8, 0.25001), 0.67792181724477928444, 1e-10),
    ("betainc", (6407991843424631.0, 4.062117223172322e16, 0.13625570365760112), 0.50034005, 1e-7),
    ("betainc", (8.667515666784542e16, 8.51445757845358e16, 0.5044540311698423), 0.504392791, 1e-7),
    ("betainc", (2.0, 1e200, 1e-300), 5e-201, 1e-13),
    ("betainc", (1e300, 10.0, 1 - 1e-16), 0.0, 0.0),
    ("betainc", (1e20, 1e50, 1e-30), 0.5, 1e-5),
]
"""Computed with 50 digits; where SciPy is NaN, the rounding of x moves the result as much."""


@pytest.mark.parametrize(("name", "numbers", "wanted", "tolerance"), EXACT)
def test_values_are_exact_where_scipys_are_not(
    name: str, numbers: tuple[float, ...], wanted: float, tolerance: float
) -> None:
    np.testing.assert_allclose(getattr(special, name)(*numbers), wanted, tolerance)


@each_dtype
def test_narrow_numbers_are_rounded_once(dtype: Any) -> None:
    x, y = operands("betaln", dtype)
    for name in ("betaln", "zeta"):
        function = getattr(special, name)
        wide = function(x.astype(np.float64), y.astype(np.float64))
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(function(x, y), wide.astype(dtype))


def test_scipy_is_imported_with_the_first_special_function() -> None:
    code = (
        "import sys, tracegraph; assert 'scipy' not in sys.modules; "
        "tracegraph.jit(lambda x: x + 1, device='host')(1.0); assert 'scipy' not in sys.modules; "
        "tracegraph.special.erf(0.5); assert 'scipy.special' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
