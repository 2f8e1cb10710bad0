"""Zeros, infinities and NaN, where the library's functions must have the C standard's values."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="there is no wheel of llvmlite for this system")

import tracegraph.ops  # noqa: F401  (registers them)
from lowering.native.library.symbols import elementwise
from tests.unit.native.library.compiled_functions import Compiled
from tracegraph.ir.op import get

NDArray = np.ndarray[Any, Any]

BY_NUMPY = [
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "arcsin"),
    *("arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "cbrt", "sqrt"),
    *("power", "arctan2", "hypot", "fmod", "remainder", "floor_divide", "nextafter", "copysign"),
    *("logaddexp", "logaddexp2", "fmax", "fmin", "maximum", "minimum", "floor", "rint"),
]
"""Ops of NumPy's own functions, which have the C standard's values."""

LARGEST, LEAST, NORMAL = 1.7976931348623157e308, 5e-324, 2.2250738585072014e-308
SPECIAL = np.array(
    [
        *(0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 1e-300, 1e300, NORMAL, LEAST, LARGEST, np.inf),
        *(709.0, 710.0, 745.0, 746.0, 1023.0, 1024.0, 1074.0, 1075.0, 2.0**52, 2.0**53 + 2, np.nan),
    ]
)
BOTH_SIGNS = np.concatenate([SPECIAL, -SPECIAL])
BINARY = {name for name in BY_NUMPY if getattr(np, name).nin == 2}

SPECIAL_FUNCTIONS = {
    "erf": [(0.0, 0.0), (-0.0, -0.0), (np.inf, 1), (-np.inf, -1), (27, 1), (LEAST, LEAST)],
    "erfc": [(0, 1), (np.inf, 0), (-np.inf, 2), (28, 0), (-28, 2)],
    "erfcx": [
        (0, 1),
        (np.inf, 0),
        (-np.inf, np.inf),
        (-27, np.inf),
        (1e300, 5.641895835477563e-301),
    ],
    "erfinv": [(0.0, 0.0), (-0.0, -0.0), (1, np.inf), (-1, -np.inf), (1.5, np.nan), (-2, np.nan)],
    "erfcinv": [(0, np.inf), (2, -np.inf), (1, 0.0), (-0.5, np.nan), (2.5, np.nan)],
    "ndtr": [(-np.inf, 0), (np.inf, 1), (0, 0.5), (-39, 0), (39, 1)],
    "ndtri": [(0, -np.inf), (1, np.inf), (0.5, 0), (-0.1, np.nan), (1.1, np.nan)],
    "gamma": [
        *((1, 1), (2, 1), (3, 2), (5, 24), (11, 3628800), (23, 1124000727777607680000.0)),
        *((0.0, np.inf), (-0.0, -np.inf), (-1, np.nan), (-np.inf, np.nan), (np.inf, np.inf)),
        *((172, np.inf), (-200.5, -0.0), (-201.5, 0.0), (-LARGEST, np.nan)),
    ],
    "gammaln": [(1, 0), (2, 0), (0, np.inf), (-1, np.inf), (np.inf, np.inf), (LARGEST, np.inf)],
    "j0": [(0, 1), (np.inf, 0), (-np.inf, 0)],
    "j1": [(0.0, 0.0), (-0.0, -0.0), (np.inf, 0)],
    "y0": [(0, -np.inf), (-1, np.nan), (np.inf, 0)],
    "y1": [(0, -np.inf), (-1, np.nan), (np.inf, 0)],
    "i0": [(0, 1), (np.inf, np.inf), (-np.inf, np.inf), (720, np.inf)],
    "i1": [(0.0, 0.0), (-0.0, -0.0), (np.inf, np.inf), (-np.inf, -np.inf)],
}
"""Of special functions, arguments with their values."""


@cache
def compiled(dtype: np.dtype[Any]) -> Compiled:
    functions = []
    for name in [*BY_NUMPY, *SPECIAL_FUNCTIONS]:
        function = elementwise(get(name), {}, [dtype] * (2 if name in BINARY else 1), dtype)
        assert function is not None
        functions.append(function)
    return Compiled(functions, speed=1)


def assert_same(got: NDArray, expected: NDArray, operands: tuple[NDArray, ...], ulps: int) -> None:
    """NaN, infinities and zeros with their signs are the same, and other numbers nearly so."""
    with np.errstate(all="ignore"):
        same = (got == expected) & (np.signbit(got) == np.signbit(expected))
        same |= np.isnan(got) & np.isnan(expected)
        limited = np.isfinite(got) & np.isfinite(expected) & (expected != 0)
        near = np.abs(got - expected) <= ulps * np.spacing(np.abs(expected))
    wrong = ~(same | (limited & near))
    assert not wrong.any(), [
        (*(x[i] for x in operands), got[i], expected[i]) for i in np.flatnonzero(wrong)[:5]
    ]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", BY_NUMPY)
def test_values_are_those_of_numpy(name: str, dtype: type) -> None:
    with np.errstate(all="ignore"):
        points = np.unique(BOTH_SIGNS.astype(dtype).view(f"u{np.dtype(dtype).itemsize}")).view(
            dtype
        )
        operands = (points,)
        if name in BINARY:
            grid = np.meshgrid(points, points)
            operands = (grid[0].ravel(), grid[1].ravel())
        expected = getattr(np, name)(*operands)
    got = compiled(np.dtype(dtype))(BY_NUMPY.index(name), *operands)
    unsigned = {"fmax", "fmin", "maximum", "minimum"}
    if name in unsigned:
        got, expected = got + 0.0, expected + 0.0
    assert_same(got, expected, operands, 8 if name.startswith("log") else 2)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", SPECIAL_FUNCTIONS)
def test_special_functions_have_their_limits(name: str, dtype: type) -> None:
    with np.errstate(all="ignore"):
        x, expected = np.array([*SPECIAL_FUNCTIONS[name], (np.nan, np.nan)]).astype(dtype).T
    x, expected = np.ascontiguousarray(x), np.ascontiguousarray(expected)
    number = len(BY_NUMPY) + list(SPECIAL_FUNCTIONS).index(name)
    assert_same(compiled(np.dtype(dtype))(number, x), expected, (x,), 2)
