"""Functions of networks and their slopes: those of mpmath's formulas, at kinks, and at the ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import mpmath
import numpy as np
import pytest

import tracegraph
from tests.helpers.devices import Device
from tracegraph import nn

Exact = Callable[[Any], Any]


def _expit(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x))


def _elu(alpha: float, divisor: float = 1.0) -> Exact:
    return lambda x: x if x > 0 else mpmath.mpf(alpha) * mpmath.expm1(x / divisor)


def _tanh_gelu(x: Any) -> Any:
    return x * _expit(2 * mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf("0.044715") * x**3))


SELU_ALPHA = 1.6732632423543772848
SELU_SCALE = 1.0507009873554804934

EXACT: dict[str, Exact] = {
    "relu": lambda x: max(x, 0),
    "relu6": lambda x: min(max(x, 0), 6),
    "leaky_relu": lambda x: x if x >= 0 else mpmath.mpf(0.01) * x,
    "hard_tanh": lambda x: min(max(x, -1), 1),
    "hard_sigmoid": lambda x: min(max(x + 3, 0), 6) / 6,
    "hard_silu": lambda x: x * min(max(x + 3, 0), 6) / 6,
    "silu": lambda x: x * _expit(x),
    "mish": lambda x: x * mpmath.tanh(mpmath.log1p(mpmath.exp(x))),
    "gelu": _tanh_gelu,
    "gelu_exact": lambda x: x * mpmath.ncdf(x),
    "sigmoid": _expit,
    "log_sigmoid": lambda x: -mpmath.log1p(mpmath.exp(-x)),
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    "squareplus": lambda x: (x + mpmath.sqrt(x * x + 4)) / 2,
    "soft_sign": lambda x: x / (1 + abs(x)),
    "elu": _elu(1.0),
    "celu": _elu(2.0, 2.0),
    "selu": lambda x: SELU_SCALE * _elu(SELU_ALPHA)(x),
    "tanh": mpmath.tanh,
}

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(nn, name) for name in EXACT if name not in ("gelu_exact", "celu")},
    "gelu_exact": lambda x: nn.gelu(x, approximate=False),
    "celu": lambda x: nn.celu(x, 2.0),
}

KINKS: dict[str, dict[float, float]] = {
    "relu": {0.0: 0.0},
    "relu6": {0.0: 0.0, 6.0: 0.0},
    "leaky_relu": {0.0: 1.0},
    "hard_tanh": {-1.0: 1.0, 1.0: 1.0},
    "hard_sigmoid": {-3.0: 0.0, 3.0: 0.0},
    "hard_silu": {-3.0: 0.0, 3.0: 1.0},
    "elu": {0.0: 1.0},
    "celu": {0.0: 1.0},
    "selu": {0.0: SELU_ALPHA * SELU_SCALE},
}
"""The slope at each kink, as JAX documents or computes it."""

LIMITS: dict[str, tuple[float, float, float, float]] = {
    "relu": (0.0, np.inf, 0.0, 1.0),
    "relu6": (0.0, 6.0, 0.0, 0.0),
    "leaky_relu": (-np.inf, np.inf, 0.01, 1.0),
    "hard_tanh": (-1.0, 1.0, 0.0, 0.0),
    "hard_sigmoid": (0.0, 1.0, 0.0, 0.0),
    "hard_silu": (0.0, np.inf, 0.0, 1.0),
    "silu": (0.0, np.inf, 0.0, 1.0),
    "mish": (0.0, np.inf, 0.0, 1.0),
    "gelu": (0.0, np.inf, 0.0, 1.0),
    "gelu_exact": (0.0, np.inf, 0.0, 1.0),
    "sigmoid": (0.0, 1.0, 0.0, 0.0),
    "log_sigmoid": (-np.inf, 0.0, 1.0, 0.0),
    "softplus": (0.0, np.inf, 0.0, 1.0),
    "squareplus": (0.0, np.inf, 0.0, 1.0),
    "soft_sign": (-1.0, 1.0, 0.0, 0.0),
    "elu": (-1.0, np.inf, 0.0, 1.0),
    "celu": (-2.0, np.inf, 0.0, 1.0),
    "selu": (-SELU_ALPHA * SELU_SCALE, np.inf, 0.0, SELU_SCALE),
    "tanh": (-1.0, 1.0, 0.0, 0.0),
}
"""By function: its values at minus infinity and infinity, and its slopes there."""

DTYPES: dict[str, Any] = {
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float32": np.float32,
    "float64": np.float64,
}

POINTS = (
    *(-700.0, -90.0, -39.5, -30.0, -24.0, -12.5, -7.0, -4.0, -2.5, -1.5, -0.5, -1e-3, -1e-6),
    *(1e-6, 1e-3, 0.25, 0.75, 1.25, 2.5, 4.5, 7.0, 12.5, 24.5, 26.0, 39.5, 41.0, 700.0, 900.0),
)


def points(dtype: Any) -> Any:
    """Numbers apart from the kinks."""
    return np.array(POINTS).astype(dtype)


def exact(name: str, x: Any, order: int) -> Any:
    """The values, or the slopes, of mpmath's function."""
    with mpmath.workdps(60):
        step = mpmath.mpf(10) ** -20
        function = EXACT[name]
        rows = [mpmath.mpf(float(number)) for number in x]
        if order:
            return np.array(
                [
                    float((function(number + step) - function(number - step)) / (2 * step))
                    for number in rows
                ]
            )
        return np.array([float(function(number)) for number in rows])


def both(name: str) -> Callable[[Any], Any]:
    """The values of a function and its slopes."""
    function = FUNCTIONS[name]

    def called(x: Any) -> Any:
        return tracegraph.jvp(function, (x,), (np.ones(x.shape, x.dtype),))

    return called


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    f"{name}_{dtype}": (both(name), (np.zeros(len(POINTS), DTYPES[dtype]),))
    for name in EXACT
    for dtype in DTYPES
}


def assert_is_exact(name: str, found: Any, dtype: Any, order: int) -> None:
    """Compare values or slopes: to some ulp, of the result, and of x that an exponential rounds."""
    x = points(dtype)
    wanted = exact(name, x, order)
    found = np.asarray(found)
    assert found.dtype == dtype
    info = ml_dtypes.finfo(dtype)
    wide = x.astype(np.float64)
    exponent = np.minimum(np.abs(wide) * (1 + wide**2 / 4 if "gelu" in name else 1), 1e4)
    computed = max(float(info.eps) if info.bits > 16 else 2.0**-23, 2.0**-52)
    relative = 2 * float(info.eps) + 32 * computed * (1 + exponent)
    allowed = relative * np.abs(wanted) + 16 * float(info.tiny)
    if order:  # factors of slopes have zeros
        allowed += 64 * computed
    apart = np.abs(found.astype(np.float64) - wanted)
    assert (apart <= allowed).all(), (name, x[apart > allowed], found[apart > allowed])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", EXACT)
def test_values_and_slopes_are_those_of_the_formulas(device: Device, name: str, dtype: str) -> None:
    values, slopes = device.run(f"{name}_{dtype}", points(DTYPES[dtype]))
    assert_is_exact(name, values, DTYPES[dtype], 0)
    assert_is_exact(name, slopes, DTYPES[dtype], 1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", KINKS)
def test_slopes_at_kinks(device: Device, name: str, dtype: str) -> None:
    x = np.zeros(len(POINTS), DTYPES[dtype])
    x[: len(KINKS[name])] = list(KINKS[name])
    slopes = device.run(f"{name}_{dtype}", x)[1][: len(KINKS[name])]
    wanted = np.array(list(KINKS[name].values())).astype(DTYPES[dtype])
    np.testing.assert_allclose(slopes.astype(float), wanted.astype(float), 2e-7)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", LIMITS)
def test_infinities_and_the_largest_numbers(device: Device, name: str, dtype: str) -> None:
    largest = 0.9 * float(ml_dtypes.finfo(DTYPES[dtype]).max)  # selu has slope 1.05
    x = np.zeros(len(POINTS), DTYPES[dtype])
    x[:5] = -np.inf, np.inf, -largest, largest, np.nan
    values, slopes = (np.asarray(y)[:5].astype(float) for y in device.run(f"{name}_{dtype}", x))
    at_ends = np.array(LIMITS[name]).astype(DTYPES[dtype]).astype(float)
    np.testing.assert_allclose(values[:2], at_ends[:2], 2e-7)
    np.testing.assert_allclose(slopes[:4], [*at_ends[2:], *at_ends[2:]], 2e-7, 1e-4)
    finite = np.isfinite(at_ends[:2])
    np.testing.assert_allclose(values[2:4][finite], at_ends[:2][finite], 2e-7, 1e-4)
    assert np.isfinite(values[2:4]).all()
    assert np.isnan(values[4])
