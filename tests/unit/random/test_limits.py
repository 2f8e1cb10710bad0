"""Distributions at the limits of their parameters, in all dtypes: in range, and as SciPy's are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from scipy import stats

import tracegraph
from tests.helpers.traced import assert_traced_equals_eager
from tracegraph import random

KEY = random.key(11)
N = 20_000
CRITICAL = 1.95
"""Of the statistic of Kolmogorov and Smirnov times sqrt(n): exceeded by 1 in 1000 samples."""

DTYPES = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16]
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
inf, nan = np.inf, np.nan


def limits(dtype: Any) -> list[float]:
    """Numbers from 0 to infinity, with the least, normal and greatest ones."""
    of = ml_dtypes.finfo(dtype)
    ends = [float(x) for x in (of.smallest_subnormal, of.tiny, of.max)]
    return [0.0, *ends[:2], 1e-3, 0.5, 1.0, 3.0, 1e3, ends[2] / 4, ends[2], inf]


def distance(x: Any, cumulative: Callable[[Any], Any]) -> float:
    """The largest distance of the empirical distribution from the exact one, times sqrt(n)."""
    expected = cumulative(np.sort(np.asarray(x, float)))
    steps = np.arange(x.size + 1) / x.size
    apart = max(np.max(steps[1:] - expected), np.max(expected - steps[:-1]))
    return float(apart * np.sqrt(x.size))


ONE_PARAMETER = {
    "gamma": (random.gamma, 0.0, inf),
    "loggamma": (random.loggamma, -inf, inf),
    "chisquare": (random.chisquare, 0.0, inf),
    "t": (random.t, -inf, inf),
    "pareto": (random.pareto, 1.0, inf),
    "rayleigh": (random.rayleigh, 0.0, inf),
}
TWO_PARAMETERS = {
    "beta": (random.beta, 1.0),
    "f": (random.f, inf),
    "weibull_min": (random.weibull_min, inf),
    "dirichlet": (
        lambda key, a, b, shape, dtype: random.dirichlet(
            key, np.stack(np.broadcast_arrays(a, b, 1.0), -1), shape, dtype
        ),
        1.0,
    ),
}


@each_dtype
@pytest.mark.parametrize("name", ONE_PARAMETER)
def test_numbers_are_in_range_for_every_parameter(name: str, dtype: Any) -> None:
    draw, low, high = ONE_PARAMETER[name]
    parameters = np.array(limits(dtype), dtype)
    x = draw(KEY, parameters, (2000, len(parameters)), dtype)
    assert x.dtype == dtype
    x = x.astype(float)
    assert ((x >= low) & (x <= high)).all()  # no NaN
    for i, parameter in enumerate(limits(dtype)):  # alone, the parameter is known to the drawing
        alone = draw(KEY, parameter, (2000,), dtype).astype(float)
        assert ((alone >= low) & (alone <= high)).all(), parameter
        assert np.isfinite(alone).mean() == pytest.approx(np.isfinite(x[:, i]).mean(), abs=0.1)


@each_dtype
@pytest.mark.parametrize("name", TWO_PARAMETERS)
def test_numbers_are_in_range_for_every_pair(name: str, dtype: Any) -> None:
    draw, high = TWO_PARAMETERS[name]
    values = np.array(limits(dtype), dtype)
    if name == "weibull_min":  # 0 times infinity has no limit
        values = values[np.isfinite(values.astype(float))]
    first, second = (x.ravel() for x in np.meshgrid(values, values))
    x = draw(KEY, first, second, (300, *first.shape), dtype)
    x = x.astype(float)
    assert ((x >= 0) & (x <= high)).all()
    if name == "dirichlet":
        eps = float(ml_dtypes.finfo(dtype).eps)
        np.testing.assert_allclose(x.sum(axis=-1), 1, atol=4 * eps)


def test_shapes_of_zero_have_limits() -> None:
    assert (random.gamma(KEY, 0.0, (99,)) == 0).all()
    assert (random.chisquare(KEY, 0.0, (99,)) == 0).all()
    assert (random.loggamma(KEY, 0.0, (99,)) == -inf).all()
    assert (random.beta(KEY, 0.0, 2.0, (99,)) == 0).all()
    assert (random.beta(KEY, 2.0, 0.0, (99,)) == 1).all()
    assert set(random.beta(KEY, 0.0, 0.0, (999,))) == {0.0, 1.0}
    assert (random.beta(KEY, inf, inf, (99,)) == 0.5).all()
    assert (random.beta(KEY, inf, 1.0, (99,)) == 1).all()
    x = random.dirichlet(KEY, [0.0, 2.0, 2.0, 0.0], (N,))
    assert (x[:, [0, 3]] == 0).all()
    assert distance(x[:, 1], stats.beta(2, 2).cdf) < CRITICAL
    y = random.dirichlet(KEY, np.zeros(3), (N,))
    np.testing.assert_allclose(np.sort(y)[:, 1:], [[0, 1]] * N)
    np.testing.assert_allclose(y.mean(axis=0), 1 / 3, atol=0.02)
    np.testing.assert_array_equal(random.dirichlet(KEY, [1.0, inf]), [0, 1])
    np.testing.assert_array_equal(random.t(KEY, inf, (9,)), random.normal(random.split(KEY)[0], 9))
    assert (random.f(KEY, inf, inf, (9,)) == 1).all()
    assert (random.pareto(KEY, inf, (9,)) == 1).all()
    assert np.isnan(random.gamma(KEY, [-1.0, nan])).all()
    assert np.isnan(random.dirichlet(KEY, [1.0, nan])).all()


def test_one_limit_among_others_changes_no_other_number() -> None:
    for draw in (random.gamma, random.loggamma, random.chisquare, random.t):
        x = draw(KEY, np.array([0.5, 1.0, 4.0]))
        y = draw(KEY, np.array([0.5, 0.0, 4.0]))
        np.testing.assert_array_equal(x[[0, 2]], y[[0, 2]])


EXTREME: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "gamma of 1e9": (lambda d: random.gamma(KEY, 1e9, (N,), d), stats.gamma(1e9)),
    "gamma of 1e5": (lambda d: random.gamma(KEY, 1e5, (N,), d), stats.gamma(1e5)),
    "gamma of 0.1": (lambda d: random.gamma(KEY, 0.1, (N,), d), stats.gamma(0.1)),
    "chisquare of 1e8": (lambda d: random.chisquare(KEY, 1e8, (N,), d), stats.chi2(1e8)),
    "t of 1e30": (lambda d: random.t(KEY, 1e30, (N,), d), stats.norm()),
    "t of 0.5": (lambda d: random.t(KEY, 0.5, (N,), d), stats.t(0.5)),
    "f of 0.2": (lambda d: random.f(KEY, 0.2, 3.0, (N,), d), stats.f(0.2, 3.0)),
    "f of 1e6": (lambda d: random.f(KEY, 1e6, 1e30, (N,), d), stats.chi2(1e6, scale=1e-6)),
    "beta of 0.1": (lambda d: random.beta(KEY, 0.1, 3.0, (N,), d), stats.beta(0.1, 3.0)),
    "beta of 1e6": (lambda d: random.beta(KEY, 1e6, 2e6, (N,), d), stats.beta(1e6, 2e6)),
    "beta of 1e30": (lambda d: 1e30 * random.beta(KEY, 2.0, 1e30, (N,), d), stats.gamma(2.0)),
    "ball of 1e9": (lambda d: random.ball(KEY, 1, 1e9, (N,), d)[:, 0], stats.uniform(-1, 2)),
    "generalized_normal of 1e9": (
        lambda d: random.generalized_normal(KEY, 1e9, (N,), d),
        stats.uniform(-1, 2),
    ),
    "generalized_normal of 0.2": (
        lambda d: random.generalized_normal(KEY, 0.2, (N,), d),
        stats.gennorm(0.2),
    ),
    "weibull of 1e30": (
        lambda d: random.weibull_min(KEY, 1e30, 0.1, (N,), d),
        stats.weibull_min(0.1, scale=1e30),
    ),
    "uniform of all": (
        lambda d: (
            random.uniform(KEY, (N,), d, -float(np.finfo(d).max), float(np.finfo(d).max))
            / np.finfo(d).max
        ),
        stats.uniform(-1, 2),
    ),
    "normal beyond 8": (
        lambda d: random.truncated_normal(KEY, 8.0, inf, (N,), d),
        stats.truncnorm(8, inf),
    ),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", EXTREME)
def test_extreme_parameters_have_their_distribution(name: str, dtype: Any) -> None:
    draw, wanted = EXTREME[name]
    with np.errstate(over="ignore"):
        assert distance(draw(dtype), wanted.cdf) < CRITICAL


# uniform numbers


@each_dtype
def test_uniform_numbers_are_below_their_bound(dtype: Any) -> None:
    of = ml_dtypes.finfo(dtype)
    most, least, eps = (float(x) for x in (of.max, of.smallest_subnormal, of.eps))
    ranges = [
        (-most, most), (0.0, most), (-most, 0.0), (-0.9 * most, most), (1.0, 1 + eps),
        (1.0, 1 + 4 * eps), (0.0, least), (-least, least), (-1 - eps, -1.0), (0.9, 1.1),
    ]  # fmt: skip
    for low, high in ranges:
        a, b = dtype(low), dtype(high)
        for x in (
            random.uniform(KEY, (N,), dtype, low, high),
            random.uniform(KEY, (N,), dtype, np.full(N, a), b),
            tracegraph.jit(lambda a, b: random.uniform(KEY, (N,), dtype, a, b), device="host")(
                a, b
            ),
        ):
            x = np.asarray(x)
            assert np.isfinite(x.astype(float)).all(), (low, high)
            assert ((x >= a) & (x < b)).all(), (low, high)
    for low, high in ((1.0, 1.0), (0.0, 0.0), (3.0, 2.0), (most, most)):
        assert (random.uniform(KEY, (9,), dtype, low, high) == dtype(low)).all()


def test_ordinary_uniform_numbers_are_jaxs() -> None:
    """`jax.random.uniform` computes this, for float32 and float64."""
    for dtype in (np.float32, np.float64):
        u = random.uniform(KEY, (999,), dtype)
        for low, high in ((-2.0, 7.0), (0.0, 1e-3), (-1e30, 1e30), (100.0, 101.0)):
            wanted = np.maximum(dtype(low), u * (dtype(high) - dtype(low)) + dtype(low))
            for bounds in ((low, high), (dtype(low), dtype(high)), (np.full(999, low), [high])):
                found = random.uniform(KEY, (999,), dtype, *bounds)
                np.testing.assert_array_equal(found, wanted)


def test_uniform_numbers_have_derivatives_in_narrow_and_wide_ranges() -> None:
    u = random.uniform(KEY, (50,))
    for low, high in ((1.0, 1 + 2.0**-50), (-1e308, 1e308), (2.0, 2.0), (0.0, 1.0)):
        slopes = tracegraph.jacfwd(
            lambda a, b: random.uniform(KEY, (50,), minval=a, maxval=b), (0, 1)
        )
        of_low, of_high = slopes(low, high)
        np.testing.assert_allclose(of_low, 1 - u, rtol=1e-12)
        np.testing.assert_allclose(of_high, u, rtol=1e-12)


# booleans and choices


@each_dtype
@pytest.mark.parametrize("p", [0.0, 1e-4, 2e-3, 1.5e-2, 0.3, 1.0])
def test_rare_booleans_are_as_rare(p: float, dtype: Any) -> None:
    count = 400_000
    p = float(dtype(p))
    for x in (
        random.bernoulli(KEY, dtype(p), (count,)),
        random.bernoulli(KEY, np.full(count, dtype(p))),
    ):
        jaxs = float(ml_dtypes.finfo(dtype).eps) * (p > 2.0 ** -(ml_dtypes.finfo(dtype).nmant // 2))
        assert abs(x.mean() - p) <= 4.5 * np.sqrt(p * (1 - p) / count) + jaxs


def test_ordinary_booleans_are_jaxs() -> None:
    for dtype in DTYPES:
        for p in (0.5, 0.3, 0.9):
            u = random.uniform(KEY, (N,), dtype)
            np.testing.assert_array_equal(random.bernoulli(KEY, dtype(p), (N,)), u < dtype(p))


@each_dtype
def test_rare_categories_are_as_rare(dtype: Any) -> None:
    logits = np.array([0.0, -7.0, -inf, 0.0], dtype)
    x = random.categorical(KEY, logits, shape=(400_000,))
    p = np.exp(logits.astype(float)) / np.exp(logits.astype(float)).sum()
    shares = np.bincount(x, minlength=4) / x.size
    assert (np.abs(shares - p) <= 4.5 * np.sqrt(p * (1 - p) / x.size)).all()


@each_dtype
def test_choices_follow_probabilities_of_any_size(dtype: Any) -> None:
    of = ml_dtypes.finfo(dtype)
    for scale in (1.0, float(of.max), 8 * float(of.smallest_subnormal)):
        p = (np.array([0.0, 0.25, 0.5, 0.0, 1.0]) * scale).astype(dtype)
        for draw in (
            lambda p: random.choice(KEY, 5, (N,), p=p),
            tracegraph.jit(lambda p: random.choice(KEY, 5, (N,), p=p), device="host"),
        ):
            shares = np.bincount(np.asarray(draw(p)), minlength=5) / N
            wanted = p.astype(float) / p.astype(float).max() / 1.75
            assert (np.abs(shares - wanted) <= 4.5 * np.sqrt(wanted * (1 - wanted) / N)).all()
    many = np.full(5000, 1e-3, dtype)
    drawn = random.choice(KEY, 5000, (40_000,), p=many)
    assert abs(drawn.mean() - 2499.5) < 4.5 * 1443 / 200
    assert len(np.unique(drawn)) > 4900


# integers and counts


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_integers_at_the_limits_of_their_dtype(dtype: str) -> None:
    of = np.iinfo(dtype)
    low, high = int(of.min), int(of.max)
    full = random.randint(KEY, (N,), low, high + 1, dtype)
    middle = (low + high) / 2
    assert abs(full.astype(float).mean() - middle) < 4.5 * (high - low) / np.sqrt(12 * N)
    for a, b in ((high - 1, high + 1), (low, low + 2), (high, high + 1)):
        assert set(map(int, random.randint(KEY, (99,), a, b, dtype))) == set(range(a, b))
    for a in (low, 5, high):
        assert (random.randint(KEY, (9,), a, a, dtype) == a).all()
        assert (random.randint(KEY, (9,), a, low, dtype) == a).all()
    beyond = random.randint(KEY, (N,), -(2**70), 2**70, dtype)
    np.testing.assert_array_equal(beyond, full)
    bounds = np.array([low, high], dtype)
    x = random.randint(KEY, (99, 2), bounds, np.array([high, high], dtype), dtype)
    assert (x[:, 1] == high).all()
    assert (x[:, 0] < high).all()


def test_counts_saturate() -> None:
    assert (random.poisson(KEY, 1e6, (9,), np.int8) == 127).all()
    assert (random.poisson(KEY, [0.0, 1e-300, nan, inf, -1.0]) == [0, 0, -1, -1, -1]).all()
    assert random.geometric(KEY, 1e-300, (9,), np.int32).tolist() == [2**31 - 1] * 9
    assert random.geometric(KEY, [5e-324, 1e-300]).tolist() == [2**63 - 1] * 2
    assert random.geometric(KEY, [1.0, 0.0, 2.0, nan]).tolist() == [1, -1, -1, -1]
    large = random.poisson(KEY, 2.0**62, (N,)).astype(float)
    assert abs(large.mean() - 2.0**62) < 4.5 * 2.0**31 / np.sqrt(N) + 1024
    x = random.binomial(KEY, [0, 5, 5, 2.0**53], [0.5, 0.0, 1.0, 1e-300], (9, 4))
    assert (x == [0, 0, 5, 0]).all()


# the normal distribution between bounds

INTERVALS = [
    (-2, 2), (-1, 2), (0, inf), (-inf, inf), (2, 2.5), (2, inf), (4, inf), (4, 5), (6, 6.25),
    (8, inf), (8.5, 9), (12, inf), (37, inf), (40, inf), (100, 100.25), (1000, inf),
    (-inf, -9), (-50, -49), (-1, 20), (-40, 40), (-inf, 0.5), (5, 5.03125),
]  # fmt: skip


@each_dtype
@pytest.mark.parametrize(("low", "high"), INTERVALS)
def test_normal_numbers_between_bounds_are_the_exact_quantiles(
    low: float, high: float, dtype: Any
) -> None:
    """In units of the distance between bounds, or of the width of the tail."""
    low, high = float(dtype(low)), float(dtype(high))
    x = random.truncated_normal(KEY, low, high, (200,), dtype)
    if not low < np.nextafter(dtype(high), dtype(low)):  # two neighbours, or one number
        assert (x == dtype(low)).all()
        return
    assert ((x > dtype(low)) & (x < dtype(high))).all()
    assert np.isfinite(x.astype(float)).all()
    eps = float(ml_dtypes.finfo(dtype).eps)
    u = np.maximum(random.uniform(KEY, (200,), dtype).astype(float), eps / 2)
    # SciPy has no digits at the far end of one side: it is asked for the nearer one
    exact = (
        stats.truncnorm(low, high).ppf(u)
        if low + high <= 0 or low < 1
        else -stats.truncnorm(-high, -low).ppf(1 - u)
    )
    end = min(abs(low), abs(high)) if low * high > 0 else 0.0
    bound = eps * (24 * np.abs(exact) + 24 + end)
    assert (np.abs(x.astype(float) - exact) <= np.maximum(bound, 1e-9 * np.abs(exact))).all()
    jitted = tracegraph.jit(
        lambda a, b: random.truncated_normal(KEY, a, b, (200,), dtype), device="host"
    )
    np.testing.assert_array_equal(np.asarray(jitted(dtype(low), dtype(high))), x)


@each_dtype
def test_normal_numbers_between_extreme_bounds(dtype: Any) -> None:
    of = ml_dtypes.finfo(dtype)
    most, least = float(of.max), float(of.smallest_subnormal)
    for low, high in (
        *((-most, most), (most / 2, inf), (most / 4, most / 2), (-inf, -most / 2), (1.0, 1.0)),
        *((40.0, 40.0), (0.0, 0.0), (0.0, least), (-inf, inf), (most, inf), (1e3, inf)),
    ):
        a, b = dtype(low), dtype(high)

        def mean(a: Any, b: Any) -> Any:
            return np.sum(random.truncated_normal(KEY, a, b, (300,), dtype) / dtype(300))

        x = random.truncated_normal(KEY, a, b, (300,), dtype).astype(float)
        assert (np.isfinite(x) & (x >= float(a)) & (x <= float(b))).all(), (low, high)
        slopes = tracegraph.grad(mean, (0, 1))(a, b)
        assert all(np.isfinite(float(s)) for s in slopes), (low, high)
    assert np.isnan(random.truncated_normal(KEY, 1.0, 0.0, (3,), dtype).astype(float)).all()


def test_normal_numbers_around_zero_are_jaxs() -> None:
    """`jax.random.truncated_normal` computes this."""
    for dtype in (np.float32, np.float64):
        root = dtype(np.sqrt(2))
        for low, high in ((-2.0, 2.0), (-3.0, 3.0), (-1.0, 0.5), (1.0, 2.5)):
            a, b = (tracegraph.special.erf(dtype(x) / root) for x in (low, high))
            v = random.uniform(KEY, (999,), dtype, a, b)
            found = random.truncated_normal(KEY, low, high, (999,), dtype)
            np.testing.assert_array_equal(found, root * tracegraph.special.erfinv(v))


@pytest.mark.parametrize(
    ("low", "high"),
    [(-1.0, 2.0), (3.0, 4.0), (9.0, inf), (-inf, -9.0), (-50.0, -49.0), (2.0, 40.0)],
)
def test_normal_numbers_have_derivatives_in_their_bounds(low: float, high: float) -> None:
    def draw(a: Any, b: Any) -> Any:
        return random.truncated_normal(KEY, a, b, (20,))

    slopes, step = tracegraph.jacrev(draw, (0, 1))(low, high), 1e-6
    second = tracegraph.jacfwd(tracegraph.jacfwd(draw, (0, 1)), (0, 1))(low, high)
    for i in range(2):
        if not np.isfinite((low, high)[i]):
            continue
        above, below = [low, high], [low, high]
        above[i] += step
        below[i] -= step
        wanted = (draw(*above) - draw(*below)) / (2 * step)
        np.testing.assert_allclose(slopes[i], wanted, rtol=1e-5, atol=1e-7)
        rates = [tracegraph.jacfwd(draw, i)(*x) for x in (above, below)]
        wanted = (rates[0] - rates[1]) / (2 * step)
        np.testing.assert_allclose(second[i][i], wanted, rtol=1e-4, atol=1e-6)


# traced as eagerly


@pytest.mark.parametrize("name", [*ONE_PARAMETER, *TWO_PARAMETERS])
def test_traced_limits_are_those_of_the_eager_run(name: str) -> None:
    values = np.array([0.0, 1e-310, 0.5, 4.0, 1e308])
    if name in ONE_PARAMETER:
        draw = ONE_PARAMETER[name][0]
        assert_traced_equals_eager(lambda a: draw(KEY, a, (3, 5), np.float64), values)
    else:
        draw = TWO_PARAMETERS[name][0]
        assert_traced_equals_eager(
            lambda a, b: draw(KEY, a, b, (3, 5), np.float64), values, values[::-1].copy()
        )


@pytest.mark.parametrize(
    ("draw", "parameters"),
    [
        (lambda s, c: random.weibull_min(KEY, s, c, (50,)), (0.0, 2.0)),
        (lambda s, c: random.weibull_min(KEY, s, c, (50,)), (1e-300, 0.004)),
        (lambda s, c: random.weibull_min(KEY, s, c, (50,)), (1.5, 1e300)),
        (lambda s, c: random.rayleigh(KEY, s, (50,)) * c, (0.0, 1.0)),
        (lambda b, c: random.pareto(KEY, b, (50,)) * c, (1e300, 1.0)),
        (
            lambda a, c: random.multivariate_normal(KEY, a * np.ones(2), c * np.eye(2)),
            (1e300, 1e-300),
        ),
    ],
)
def test_derivatives_at_limits_are_numbers(draw: Any, parameters: tuple[float, float]) -> None:
    slopes = tracegraph.grad(lambda *p: np.sum(draw(*p)), (0, 1))(*parameters)
    assert not np.isnan(slopes).any()
