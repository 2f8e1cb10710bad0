"""Poisson, binomial and geometric numbers: their distributions, limits and dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.traced import assert_traced_equals_eager
from tracegraph import random, special

KEY = random.key(2025)
N = 40_000
CRITICAL = 1.95
"""Of the statistic of Kolmogorov and Smirnov times sqrt(n), which is smaller for integers."""


def poisson(mean: float) -> tuple[Callable[[Any], Any], Callable[[Any], Any], float, float]:
    """How to draw, the distribution function, the mean and the variance."""
    return (
        lambda shape: random.poisson(KEY, mean, shape),
        lambda k: special.gammaincc(k + 1, mean),
        mean,
        mean,
    )


def binomial(n: int, p: float) -> tuple[Callable[[Any], Any], Callable[[Any], Any], float, float]:
    return (
        lambda shape: random.binomial(KEY, n, p, shape),
        lambda k: np.where(k < n, special.betainc(np.maximum(n - k, 0.5), k + 1, 1 - p), 1),
        n * p,
        n * p * (1 - p),
    )


DISTRIBUTIONS = {
    **{f"poisson({m})": poisson(m) for m in (0.01, 1.0, 9.99, 10.0, 35.5, 1e4, 1e12)},
    **{
        f"binomial({n}, {p})": binomial(n, p)
        for n, p in (
            *((1, 0.25), (12, 0.5), (30, 0.9), (100, 0.09), (101, 0.1), (64, 0.5)),
            *((1000, 0.75), (10**6, 1e-6), (10**6, 0.3)),
        )
    },
    "geometric(0.3)": (
        lambda shape: random.geometric(KEY, 0.3, shape),
        lambda k: 1 - 0.7**k,
        1 / 0.3,
        0.7 / 0.09,
    ),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_samples_have_their_distribution(name: str) -> None:
    draw, cumulative, mean, variance = DISTRIBUTIONS[name]
    x = draw((N,)).astype(float)
    assert (x == np.floor(x)).all()
    assert abs(x.mean() - mean) < 4 * np.sqrt(variance / N)
    assert abs(x.var() - variance) < 0.06 * variance + 0.002
    places = np.unique(x)
    below = np.searchsorted(np.sort(x), places, "right") / N
    assert np.max(np.abs(below - cumulative(places))) * np.sqrt(N) < CRITICAL
    shifted = np.searchsorted(np.sort(x), places, "left") / N  # the test notices a shift by one
    if variance < 100:
        assert np.max(np.abs(shifted - cumulative(places))) * np.sqrt(N) > CRITICAL


@pytest.mark.parametrize(
    "draw",
    [
        lambda key, x: random.poisson(key, 30 * x),
        lambda key, x: random.binomial(key, 50, x),
        lambda key, x: random.geometric(key, x),
    ],
)
def test_traced_samples_are_those_of_the_eager_run(draw: Callable[..., Any]) -> None:
    x = np.linspace(0.05, 0.95, 12).reshape(3, 4)
    assert_traced_equals_eager(draw, KEY, x)


def test_impossible_parameters() -> None:
    lam = [0.0, -1.0, np.nan, np.inf, 1e300]
    np.testing.assert_array_equal(random.poisson(KEY, lam), [0, -1, -1, -1, -1])
    n, p = [0, 5, 5, 5, -1, 5, np.nan], [0.5, 0, 1, 1.5, 0.5, np.nan, 0.5]
    np.testing.assert_array_equal(
        random.binomial(KEY, n, p), [0, 0, 5, np.nan, np.nan, np.nan, np.nan]
    )
    p = [1.0, 0.0, -0.5, 2.0, np.nan]
    np.testing.assert_array_equal(random.geometric(KEY, p), [1, -1, -1, -1, -1])


def test_large_means_stay_in_range() -> None:
    x = random.poisson(KEY, 2.0**61, (100,)) - 2**61
    assert 0.5 < x.std() / 2**30.5 < 2
    y = random.binomial(KEY, 2.0**53, 0.5, (100,)) - 2.0**52
    assert 0.5 < y.std() / 2**25.5 < 2


def test_shapes_and_dtypes() -> None:
    assert random.poisson(KEY, [[1.0], [20.0]], (2, 3), np.int32).dtype == np.int32
    assert random.binomial(KEY, [5, 6], [[0.5], [0.25]]).shape == (2, 2)
    assert random.binomial(KEY, 5, 0.5, (4,), np.float32).dtype == np.float32
    assert random.geometric(KEY, np.float32(0.5), 3).shape == (3,)
    with pytest.raises(
        ValueError, match=r"a parameter broadcasts to \(3, 2\), beyond the shape \(2,\)"
    ):
        random.poisson(KEY, np.ones((3, 1)), (2,))
    with pytest.raises(TypeError, match="poisson makes signed integers, got dtype float64"):
        random.poisson(KEY, 1.0, (), np.float64)
    with pytest.raises(TypeError, match="real floating-point numbers, got int64"):
        random.binomial(KEY, 5, 0.5, (), np.int64)


def test_counts_are_constants_to_derivatives() -> None:
    slope = tracegraph.grad(lambda x: x * random.binomial(KEY, 20, x))(0.5)
    assert slope == random.binomial(KEY, 20, 0.5)


def test_samples_differ_by_lane() -> None:
    keys = random.split(KEY, 4)
    found = tracegraph.vmap(lambda key: random.poisson(key, 40.0, (50,)))(keys)
    for key, row in zip(keys, found, strict=True):
        np.testing.assert_array_equal(row, random.poisson(key, 40.0, (50,)))
