"""Distributions: moments, the test of Kolmogorov and Smirnov, bounds, and JAX's formulas."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tracegraph
from tests.helpers.agreement import assert_agrees
from tests.helpers.traced import assert_traced_equals_eager
from tracegraph import random, special

KEY = random.key(2024)
N = 40_000

CRITICAL = 1.95
"""Of the statistic of Kolmogorov and Smirnov times sqrt(n): exceeded by 1 in 1000 samples."""


def of(draw: Callable[..., Any], key: Any, shape: Any, dtype: Any, *parameters: Any) -> Any:
    """Samples of a distribution that has parameters."""
    return draw(key, *parameters, shape, dtype)


DISTRIBUTIONS: dict[str, tuple[Callable[..., Any], Callable[[Any], Any]]] = {
    "uniform": (random.uniform, lambda x: x),
    "uniform of a range": (
        lambda *a: random.uniform(*a, minval=-3.0, maxval=5.0),
        lambda x: (x + 3) / 8,
    ),
    "normal": (random.normal, special.ndtr),
    "truncated_normal": (
        lambda key, shape, dtype: random.truncated_normal(key, -0.5, 2.0, shape, dtype),
        lambda x: (special.ndtr(x) - special.ndtr(-0.5)) / (special.ndtr(2.0) - special.ndtr(-0.5)),
    ),
    "exponential": (random.exponential, lambda x: -np.expm1(-x)),
    "gumbel": (random.gumbel, lambda x: np.exp(-np.exp(-x))),
    "laplace": (random.laplace, lambda x: np.where(x < 0, np.exp(x) / 2, 1 - np.exp(-x) / 2)),
    "logistic": (random.logistic, special.expit),
    "cauchy": (random.cauchy, lambda x: 0.5 + np.arctan(x) / np.pi),
    "rayleigh": (
        lambda key, shape, dtype: random.rayleigh(key, 2.0, shape, dtype),
        lambda x: -np.expm1(-x * x / 8),
    ),
    "pareto": (
        lambda key, shape, dtype: random.pareto(key, 1.5, shape, dtype),
        lambda x: 1 - x**-1.5,
    ),
    "weibull_min": (
        lambda key, shape, dtype: random.weibull_min(key, 2.0, 3.0, shape, dtype),
        lambda x: -np.expm1(-((x / 2) ** 3)),
    ),
    "gamma": (lambda *a: of(random.gamma, *a, 2.0), lambda x: 1 - (1 + x) * np.exp(-x)),
    "gamma of 1/2": (lambda *a: of(random.gamma, *a, 0.5), lambda x: special.erf(np.sqrt(x))),
    "loggamma": (lambda *a: of(random.loggamma, *a, 1.0), lambda x: -np.expm1(-np.exp(x))),
    "chisquare": (lambda *a: of(random.chisquare, *a, 2.0), lambda x: -np.expm1(-x / 2)),
    "t": (lambda *a: of(random.t, *a, 2.0), lambda x: 0.5 + x / (2 * np.sqrt(2 + x * x))),
    "f": (lambda *a: of(random.f, *a, 2.0, 2.0), lambda x: x / (1 + x)),
    "beta": (lambda *a: of(random.beta, *a, 1.0, 4.0), lambda x: 1 - (1 - x) ** 4),
    "beta of 1/2": (
        lambda *a: of(random.beta, *a, 0.5, 0.5),
        lambda x: 2 / np.pi * np.arcsin(np.sqrt(x)),
    ),
    "dirichlet": (
        lambda *a: of(random.dirichlet, *a, np.array([1.0, 4.0]))[..., 0],
        lambda x: 1 - (1 - x) ** 4,
    ),
}

each_distribution = pytest.mark.parametrize("name", DISTRIBUTIONS)


def distance(x: Any, cumulative: Callable[[Any], Any]) -> float:
    """The largest distance of the empirical distribution from the exact one, times sqrt(n)."""
    expected = cumulative(np.sort(np.asarray(x, float)))
    steps = np.arange(x.size + 1) / x.size
    apart = max(np.max(steps[1:] - expected), np.max(expected - steps[:-1]))
    return float(apart * np.sqrt(x.size))


@each_distribution
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_samples_have_their_distribution(name: str, dtype: Any) -> None:
    draw, cumulative = DISTRIBUTIONS[name]
    x = draw(KEY, (N,), dtype)
    assert (x.dtype, x.shape) == (dtype, (N,))
    assert np.isfinite(x).all()
    assert distance(x, cumulative) < CRITICAL


@each_distribution
def test_the_statistic_tells_distributions_apart(name: str) -> None:
    draw, cumulative = DISTRIBUTIONS[name]
    x = np.array(draw(KEY, (N,), np.float64))
    x[: N // 30] = np.median(x)
    assert distance(x, cumulative) > CRITICAL


@each_distribution
def test_traced_samples_are_those_of_the_eager_run(name: str) -> None:
    draw, _ = DISTRIBUTIONS[name]
    assert_traced_equals_eager(lambda key: draw(key, (3, 5), np.float64), KEY)
    found = tracegraph.jit(lambda key: draw(key, (3, 5), np.float32), device="host")(KEY)
    assert_agrees(np.asarray(found), np.asarray(draw(KEY, (3, 5), np.float32)), 2)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_dtypes(dtype: Any) -> None:
    x = random.uniform(KEY, (N,), dtype)
    assert x.dtype == dtype
    assert len(np.unique(x.astype(float))) == (1024 if dtype == np.float16 else 128)
    assert float(x.max()) < 1
    assert float(x.min()) == 0
    assert abs(random.normal(KEY, (N,), dtype).astype(float).std() - 1) < 0.02


def test_moments_of_normal_numbers() -> None:
    x = random.normal(KEY, (N,))
    for power, moment, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs(np.mean(x**power) - moment) < 4 * np.sqrt(variance / N)
    z = random.normal(KEY, (N,), np.complex128)
    assert abs(np.mean(np.abs(z) ** 2) - 1) < 4 / np.sqrt(N)
    assert abs(np.mean(z.real * z.imag)) < 4 * 0.5 / np.sqrt(N)


def test_streams_are_independent() -> None:
    streams = [random.uniform(k, (N,)) for k in random.split(KEY, 4)]
    streams += [random.uniform(random.fold_in(KEY, i), (N,)) for i in (4, 5, 2**31)]
    streams += [random.uniform(random.key(seed), (N,)) for seed in (2025, 2026)]
    for x, y in combinations(streams, 2):
        assert abs(np.corrcoef(x, y)[0, 1]) < 4.5 / np.sqrt(N)
    x = streams[0]
    for lag in (1, 2, 16, 256):
        assert abs(np.corrcoef(x[lag:], x[:-lag])[0, 1]) < 4 / np.sqrt(N)


def test_bits_are_balanced() -> None:
    drawn = random.bits(KEY, (N,))
    for place in range(64):
        ones = int(np.sum(drawn >> np.uint64(place) & np.uint64(1)))
        assert abs(ones - N / 2) < 4.5 * np.sqrt(N) / 2


# bounds and integers


def test_uniform_bounds_broadcast() -> None:
    low, high = np.array([[0.0], [10.0]]), np.array([1.0, 2.0, 30.0])
    x = random.uniform(KEY, (2, 3), minval=low, maxval=high)
    u = random.uniform(KEY, (2, 3))
    np.testing.assert_allclose(x, np.maximum(u * (high - low) + low, low), rtol=1e-15)
    with pytest.raises(ValueError, match="beyond the shape"):
        random.uniform(KEY, (3,), minval=low, maxval=high)
    with pytest.raises(TypeError, match="floating-point"):
        random.uniform(KEY, (3,), np.int32)


def test_truncated_normals_stay_within_their_bounds() -> None:
    low = np.array([-30.0, -1.0, 0.0, 3.0, 5.0])
    for width in (1e-12, 0.5, 20.0):
        x = random.truncated_normal(KEY, low, low + width, (1000, 5))
        assert ((x > low) & (x < low + width)).all()


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_integers_are_equally_probable(dtype: str) -> None:
    low = -5 if dtype[0] == "i" else 3
    x = random.randint(KEY, (N,), low, low + 7, dtype)
    assert x.dtype == np.dtype(dtype)
    counts = np.bincount(x.astype(np.int64) - low, minlength=7)
    assert counts.size == 7
    assert np.sum((counts - N / 7) ** 2 / (N / 7)) < 22.5  # chi-square of 6 degrees, 1 in 1000


@pytest.mark.parametrize("dtype", ["i4", "u4", "i8", "u8"])
def test_integers_follow_the_definition(dtype: str) -> None:
    """Twice as many bits as the dtype has, modulo the number of integers."""
    size = 8 * np.dtype(dtype).itemsize
    first, second = random.split(KEY)
    upper, lower = (random.bits(k, (50,), f"u{size // 8}") for k in (first, second))
    limits = np.iinfo(dtype)
    for low, high in [(0, 10), (limits.min, 5), (3, limits.max), (limits.min, limits.max + 1)]:
        span = high - low
        wanted = []
        for a, b in zip(map(int, upper), map(int, lower), strict=True):
            root = (1 << size // 2) % span
            power = (root * root) % (1 << size) % span
            offset = ((a % span) * power + b % span) % (1 << size) % span
            wanted.append(low + (b if span == 1 << size else offset))
        np.testing.assert_array_equal(random.randint(KEY, (50,), low, high, dtype), wanted)


def test_bounds_of_integers() -> None:
    np.testing.assert_array_equal(random.randint(KEY, (5,), 3, 3), [3] * 5)
    np.testing.assert_array_equal(random.randint(KEY, (5,), 7, 3), [7] * 5)
    low = np.array([0, 100])
    x = random.randint(KEY, (200, 2), low, low + 3)
    assert (x.min(axis=0) == low).all()
    assert (x.max(axis=0) == low + 2).all()
    full = random.randint(KEY, (N,), -128, np.int64(128), np.int8)
    assert len(np.unique(full)) == 256
    assert_traced_equals_eager(lambda key, n: random.randint(key, (9,), 0, n), KEY, np.int32(5))
    for wrong in ({"minval": 0.5, "maxval": 2}, {"minval": 0, "maxval": 2, "dtype": float}):
        with pytest.raises(TypeError, match="integer"):
            random.randint(KEY, (2,), **wrong)
    with pytest.raises(ValueError, match="beyond the shape"):
        random.randint(KEY, (3,), np.zeros((2, 1), int), 4)


def test_booleans() -> None:
    x = random.bernoulli(KEY, np.array([0.0, 0.25, 1.0]), (N, 3))
    assert x.dtype == bool
    mean = x.mean(axis=0)
    assert (mean[0], mean[2]) == (0, 1)
    assert abs(mean[1] - 0.25) < 4 * np.sqrt(0.1875 / N)
    assert random.bernoulli(KEY, np.full((2, 3), 0.5)).shape == (2, 3)
    assert set(np.unique(random.rademacher(KEY, (99,), np.float32))) == {-1.0, 1.0}
    with pytest.raises(TypeError, match="floating-point"):
        random.bernoulli(KEY, 1)


# choices


def test_categories_have_their_probabilities() -> None:
    p = np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]])
    with np.errstate(divide="ignore"):
        logits = np.log(p) + 3
    x = random.categorical(KEY, logits, shape=(N, 2))
    assert x.dtype == np.int64
    for column in range(2):
        shares = np.bincount(x[:, column], minlength=3) / N
        assert (
            np.abs(shares - p[column]) < 4.5 * np.sqrt(p[column] * (1 - p[column]) / N) + 1e-12
        ).all()
    assert random.categorical(KEY, logits, axis=0).shape == (3,)
    np.testing.assert_array_equal(
        random.categorical(KEY, logits.T, axis=0).shape, random.categorical(KEY, logits).shape
    )
    with pytest.raises(ValueError, match="must end with"):
        random.categorical(KEY, logits, shape=(3,))


def test_choices() -> None:
    a = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    rows = random.choice(KEY, a, (100,))
    places = random.randint(KEY, (100,), 0, 3)
    np.testing.assert_array_equal(rows, a[places])
    np.testing.assert_array_equal(random.choice(KEY, 3, (100,)), places)
    assert random.choice(KEY, a, (4, 5), axis=1).shape == (3, 4, 5)
    p = np.array([0.5, 0.0, 0.5])
    drawn = random.choice(KEY, 3, (N,), p=p)
    shares = np.bincount(drawn, minlength=3) / N
    assert (np.abs(shares - p) < 4 * 0.5 / np.sqrt(N)).all()
    assert shares[1] == 0
    assert_traced_equals_eager(lambda key, p: random.choice(key, a, (7,), p=p), KEY, p)
    with pytest.raises(ValueError, match="at least one"):
        random.choice(KEY, 0)
    with pytest.raises(ValueError, match="for each of 3"):
        random.choice(KEY, 3, p=[1.0])
    with pytest.raises(ValueError, match="cannot draw 4 elements from 3"):
        random.choice(KEY, 3, (2, 2), replace=False)


def test_samples_have_derivatives_in_their_parameters() -> None:
    def mean(scale: Any) -> Any:
        return np.mean(random.rayleigh(KEY, scale, (50,)) ** 2)

    scale = np.float64(1.5)
    np.testing.assert_allclose(tracegraph.grad(mean)(scale), 2 * mean(scale) / scale, rtol=1e-12)


# the gamma distribution


def test_gamma_numbers_have_their_moments() -> None:
    a = np.array([0.1, 0.7, 1.0, 3.5, 200.0])
    x = random.gamma(KEY, a, (N, 5))
    assert (np.abs(x.mean(axis=0) - a) < 4.5 * np.sqrt(a / N)).all()
    np.testing.assert_allclose(x.var(axis=0), a, rtol=0.15)


def test_logarithms_of_gamma_numbers_are_finite() -> None:
    x = random.loggamma(KEY, 1e-4, (1000,))
    assert np.isfinite(x).all()
    assert x.min() < -1000
    np.testing.assert_allclose(random.gamma(KEY, 1e-4, (1000,)), np.exp(x), 1e-12, 1e-320)
    y = random.beta(KEY, 1e-4, 1e-4, (1000,))
    assert np.isfinite(y).all()
    np.testing.assert_allclose(random.dirichlet(KEY, np.full(3, 1e-3), (99,)).sum(axis=-1), 1)


def test_impossible_parameters_end_the_loop() -> None:
    x = random.gamma(KEY, [-1.0, np.nan, 0.0, np.inf, 2.0])
    assert np.isnan(x[:2]).all()
    np.testing.assert_array_equal(x[2:4], [0, np.inf])
    assert np.isfinite(x[4])


def test_shapes_of_parameters() -> None:
    assert random.gamma(KEY, np.ones((2, 1)), (2, 3)).shape == (2, 3)
    assert random.t(KEY, np.ones(3)).shape == (3,)
    assert random.dirichlet(KEY, np.ones((2, 4))).shape == (2, 4)
    assert random.dirichlet(KEY, np.ones(4), (5, 2)).shape == (5, 2, 4)
    with pytest.raises(ValueError, match="beyond the shape"):
        random.gamma(KEY, np.ones((2, 1)), (3,))
    with pytest.raises(ValueError, match="at least one axis"):
        random.dirichlet(KEY, 1.0)


def test_the_gamma_distribution_has_no_derivative_in_its_parameter() -> None:
    def draw(a: Any) -> Any:
        return random.gamma(KEY, a)

    for derivative in (
        lambda: tracegraph.grad(draw)(2.0),
        lambda: tracegraph.jvp(draw, (2.0,), (1.0,)),
    ):
        with pytest.raises(tracegraph.errors.DerivativeError, match="no derivative in its param"):
            derivative()
    slope = tracegraph.grad(lambda scale: scale * draw(2.0))(3.0)
    np.testing.assert_array_equal(slope, draw(2.0))


def test_rejection_runs_in_loops() -> None:
    def total(key: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            return x + random.gamma(random.fold_in(key, i), 2.0, x.shape)

        return tracegraph.fori_loop(0, 5, step, np.zeros(4))

    wanted = sum(random.gamma(random.fold_in(KEY, i), 2.0, (4,)) for i in range(5))
    found = tracegraph.jit(total, device="host")(KEY)
    np.testing.assert_allclose(found, wanted, rtol=1e-14)
