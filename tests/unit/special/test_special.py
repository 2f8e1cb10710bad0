"""The values of special functions: exact constants, SciPy's values, and the limits.

Constants were computed with 45 digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import tracegraph
from tests.helpers.agreement import assert_agrees
from tests.helpers.traced import assert_traced_equals_eager
from tracegraph import special

EXACT: dict[str, dict[float, float]] = {
    "erf": {
        0.001: 0.001128378790969236403,
        0.4: 0.4283923550466684765,
        0.999: 0.8422852702064969416,
        1.7: 0.9837904585907745608,
        -3.2: -0.9999939742388482379,
    },
    "erfc": {
        0.3: 0.6713732405408725838,
        0.6: 0.3961439091520740949,
        2.5: 0.0004069520174449589396,
        10.0: 2.088487583762544757e-45,
        25.5: 8.801662690727950571e-285,
        -2.0: 1.995322265018952734,
    },
    "erfcx": {
        -5.25: 1867547484791.334511,
        0.125: 0.8732218450821508096,
        1.75: 0.2849722347374363892,
        30.0: 0.0187958888614167515,
    },
    "erfinv": {
        1e-08: 8.862269254527580554e-9,
        0.4375: 0.40950827913413152,
        -0.75: -0.8134198475976185417,
        0.99951171875: 2.465754958722754874,
    },
    "erfcinv": {
        1e-300: 26.20946996051612389,
        1e-12: 5.042029745639059376,
        0.125: 1.084787040069283141,
        1.25: -0.2253120550121781047,
    },
    "ndtr": {
        -37.5: 4.605353009581954844e-308,
        -5.25: 7.604960516488714251e-8,
        -0.5: 0.3085375387259868964,
        0.75: 0.7733726476231318007,
        3.0: 0.9986501019683699055,
    },
    "ndtri": {
        1e-250: -33.79958617269483747,
        0.001: -3.090232306167813535,
        0.375: -0.318639363964375163,
        0.875: 1.150349380376008178,
    },
    "log_ndtr": {
        -1000.25: -500257.8581947804397,
        -5.0: -15.06499839398872574,
        -0.5: -1.175911761593618609,
        0.5: -0.3689464152886563931,
        6.5: -4.016000583939759112e-11,
    },
    "gammaln": {
        1e-05: 11.51291969289582563,
        0.75: 0.2032809514312953715,
        1.0625: -0.03295710029357781908,
        1.9375: -0.02514761940298887101,
        2.5: 0.2846828704729191596,
        7.75: 8.025458396315983871,
        1234.5: 7550.550901077894896,
    },
    "gamma": {
        1e-05: 99999.42279422555949,
        0.75: 1.225416702465177645,
        4.25: 8.285085141835220166,
        30.5: 4.822696933490908601e31,
        170.5: 5.562092414559999611e305,
        -2.25: -1.742814865728252651,
        -30.5: -2.13579744369417456e-33,
    },
    "digamma": {
        1e-05: -100000.5771992156729,
        0.75: -1.08586087978647217,
        1.4375: -0.02361354400529789914,
        1.5: 0.03648997397857652056,
        3.5: 1.103156640645243187,
        1000000.0: 13.81551005796419077,
        -3.25: 4.466275872350279967,
    },
    "i0": {
        0.25: 1.015686141223607923,
        7.0: 168.5939085102896989,
        19.5: 26760525.33983876603,
        25.0: 5774560606.466310316,
        700.0: 1.529593347671873736e302,
    },
    "i1": {
        0.25: 0.1259791089454679259,
        -7.0: -156.0390928699554535,
        19.5: 26065069.26445716569,
        25.0: 5657865129.878701353,
        700.0: 1.528500390233900688e302,
    },
    "i0e": {
        0.25: 0.7910171621397193639,
        7.0: 0.1537377446728812482,
        19.5: 0.09093943209515648331,
        25.0: 0.08019677354743670842,
        100000.0: 0.001261567837976776767,
    },
    "i1e": {
        0.25: 0.09811262869736824667,
        7.0: 0.1422892347095986744,
        19.5: 0.08857608609431485246,
        25.0: 0.07857611331929277203,
        100000.0: 0.001261561530121817127,
    },
    "logit": {
        1e-10: -23.0258509298404568,
        0.25: -1.098612288668109691,
        0.5009765625: 0.003906254967065099997,
        0.9990234375: 6.930494765951626481,
    },
    "log_expit": {
        -50.0: -50.0,
        -0.5: -0.9740769841801066809,
        0.75: -0.3868710061148999437,
        40.0: -4.248354255291588986e-18,
    },
    "j0": {
        0.25: 0.9844359292958527049,
        1.5: 0.5118276717359181287,
        12.25: 0.1009306105105151007,
        40.5: -0.05358267563226294688,
    },
    "j1": {
        0.25: 0.1240259773227269227,
        1.5: 0.557936507910099642,
        12.0: -0.2234471044906276124,
        -40.5: -0.1126905299405943127,
    },
    "y0": {
        0.25: -0.9315730249300586869,
        1.5: 0.382448923797758844,
        12.25: -0.204301626108947336,
        41.5: 0.0159465087140080311,
    },
    "y1": {
        0.25: -2.704105229315282444,
        1.5: -0.412308626973911296,
        12.0: -0.05709921826089652105,
        40.5: 0.05498584250054305299,
    },
    "exp1": {
        1e-05: 10.93571980004369553,
        0.5: 0.5597735947761608117,
        1.0625: 0.1977572147755009372,
        12.5: 2.773944544005239937e-7,
        700.0: 1.406518766234032923e-307,
    },
    "expi": {
        -3.5: -0.006970139857548392919,
        1.0: 1.895117816355936755,
        20.5: 41143090.41706761392,
        40.25: 7705685769793695.6,
        709.0: 1.160794336657263602e305,
    },
}

POLYGAMMA = [
    (1, 0.3, 12.2453645461077313),
    (1, 12.0, 0.08690187287176839075),
    (2, 1.5, -0.8287966442343199956),
    (4, -2.25, 24481.47991090256251),
    (30, 3.5, -3611857616302858.101),
]
BETALN = [
    (0.5, 0.25, 1.657106516191482173),
    (3.0, 250.0, -15.88319576394550832),
    (10000.0, 20000.0, -19098.90853822089167),
    (12.5, 20.0, -21.7469537144784219),
]

ULPS = {
    **dict.fromkeys(["j0", "j1", "y0", "y1"], 128),
    **dict.fromkeys(["i0", "i1", "i0e", "i1e", "exp1", "expi"], 10),
    **dict.fromkeys(["digamma", "gamma"], 16),
    **dict.fromkeys(["log_ndtr", "ndtr"], 8),
    "gammaln": 32,
}
"""Errors that are allowed; of Bessel functions, some ulp of 1 near a zero; others are 4 ulp."""

LIMITS: dict[str, list[tuple[float, float]]] = {
    "erf": [(-np.inf, -1), (np.inf, 1), (-0.0, -0.0)],
    "erfc": [(-np.inf, 2), (np.inf, 0), (30.0, 0), (0.0, 1)],
    "erfcx": [(-np.inf, np.inf), (-30.0, np.inf), (np.inf, 0)],
    "erfinv": [(-1, -np.inf), (1, np.inf), (1.5, np.nan), (-2, np.nan), (-0.0, -0.0)],
    "erfcinv": [(0, np.inf), (2, -np.inf), (1, 0), (-0.5, np.nan), (2.5, np.nan)],
    "ndtr": [(-np.inf, 0), (np.inf, 1), (0, 0.5)],
    "ndtri": [(0, -np.inf), (1, np.inf), (0.5, 0), (2, np.nan), (-1, np.nan)],
    "log_ndtr": [(-np.inf, -np.inf), (np.inf, -0.0)],
    "gammaln": [(0, np.inf), (-3, np.inf), (np.inf, np.inf), (1, 0), (2, 0)],
    "gamma": [(0.0, np.inf), (-0.0, -np.inf), (-3, np.nan), (172, np.inf), (-181.5, 0)],
    "digamma": [(0.0, -np.inf), (-0.0, np.inf), (-3, np.nan), (np.inf, np.inf)],
    "i0": [(-np.inf, np.inf), (np.inf, np.inf), (0, 1)],
    "i1": [(-np.inf, -np.inf), (np.inf, np.inf), (-0.0, -0.0)],
    "i0e": [(-np.inf, 0), (np.inf, 0)],
    "i1e": [(-np.inf, -0.0), (np.inf, 0), (-0.0, -0.0)],
    "j0": [(-np.inf, 0), (np.inf, 0), (0, 1)],
    "j1": [(-np.inf, -0.0), (np.inf, 0), (-0.0, -0.0), (5e-300, 2.5e-300)],
    "y0": [(0, -np.inf), (np.inf, 0), (-1, np.nan), (-np.inf, np.nan)],
    "y1": [(0, -np.inf), (np.inf, 0), (-1, np.nan)],
    "exp1": [(0, np.inf), (np.inf, 0), (-1, np.nan), (800, 0)],
    "expi": [(0, -np.inf), (np.inf, np.inf), (-np.inf, -0.0), (800, np.inf)],
    "expit": [(-np.inf, 0), (np.inf, 1), (-1000, 0)],
    "logit": [(0, -np.inf), (1, np.inf), (2, np.nan), (-1, np.nan), (0.5, 0)],
    "log_expit": [(-np.inf, -np.inf), (np.inf, 0)],
    "entr": [(0, 0), (-1, -np.inf), (np.inf, -np.inf), (1, -0.0)],
}


def of(name: str, x: Any) -> Any:
    return getattr(special, name)(np.array(x, float))


@pytest.mark.parametrize("name", EXACT)
def test_values_are_exact_to_some_ulp(name: str) -> None:
    x, wanted = map(list, zip(*EXACT[name].items(), strict=True))
    ulps = ULPS.get(name, 4)
    assert_agrees(of(name, x), np.array(wanted), ulps)


@pytest.mark.parametrize("name", LIMITS)
def test_limits(name: str) -> None:
    x, wanted = map(list, zip(*LIMITS[name], strict=True))
    assert_agrees(of(name, x), np.array(wanted, float), 1)
    assert np.isnan(of(name, np.nan))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("name", EXACT)
def test_narrow_dtypes_are_rounded_once(name: str, dtype: Any) -> None:
    with np.errstate(all="ignore"):
        x = np.array(list(EXACT[name]), dtype)
        found, wanted = getattr(special, name)(x), of(name, x).astype(dtype)
    assert found.dtype == dtype
    assert_agrees(found, wanted, 0)


def test_integers_become_floating_point() -> None:
    assert special.gamma(np.array([1, 5])).dtype == np.float64
    np.testing.assert_array_equal(special.gamma([1, 2, 5]), [1, 1, 24])
    with pytest.raises(TypeError, match=r"erf is not defined for ~c128\[\]"):
        special.erf(1j)


@pytest.mark.parametrize(("n", "x", "wanted"), POLYGAMMA)
def test_polygamma(n: int, x: float, wanted: float) -> None:
    assert_agrees(special.polygamma(n, np.float64(x)), np.float64(wanted), 16)


def test_orders_of_polygamma() -> None:
    np.testing.assert_array_equal(special.polygamma(0, [2.5]), special.digamma([2.5]))
    for n in (-1, 1.5, 170, np.nan, np.inf):
        with pytest.raises(ValueError, match="must be an integer from 0 to 169"):
            special.polygamma(n, 1.0)
    with pytest.raises(ValueError, match="must be integers from 0"):
        special.polygamma(np.array([1, -1]), 1.0)
    x = np.array([0.3, 1.0, 12.5, -2.25, 1e5])
    orders = np.arange(34)[:, None]
    wanted = [special.polygamma(n, x) for n in range(34)]
    np.testing.assert_allclose(special.polygamma(orders, x), wanted, rtol=2e-14)
    assert_traced_equals_eager(special.polygamma, orders, x)
    found = tracegraph.jit(special.polygamma, device="host")(3, 2.0)
    np.testing.assert_allclose(found, special.polygamma(3, 2.0), rtol=1e-15)
    for dtype in (np.float32, np.float64):
        narrow = special.polygamma(np.int8([0, 1, 30]), dtype([1.5, 2.5, 40.0]))
        assert narrow.dtype == dtype
        wide = special.polygamma(np.array([0, 1, 30]), np.array([1.5, 2.5, 40.0]))
        np.testing.assert_allclose(narrow, wide, rtol=1e-6)


def test_derivatives_of_polygamma_of_several_orders() -> None:
    orders, x = np.array([0, 1, 2, 5]), np.array([0.5, 1.5, -0.75, 8.0])
    slope = tracegraph.grad(lambda x: np.sum(special.polygamma(orders, x)))(x)
    np.testing.assert_allclose(slope, special.polygamma(orders + 1, x), rtol=1e-13)
    of_traced = tracegraph.grad(lambda n, x: np.sum(special.polygamma(n, x)), 1)(orders, x)
    np.testing.assert_allclose(of_traced, slope, rtol=1e-13)


@pytest.mark.parametrize(("a", "b", "wanted"), BETALN)
def test_beta_and_its_logarithm(a: float, b: float, wanted: float) -> None:
    assert_agrees(special.betaln(np.float64(a), np.float64(b)), np.float64(wanted), 8)
    np.testing.assert_allclose(special.beta(b, a), np.exp(wanted), rtol=1e-15 * max(-wanted, 4))


def test_beta_of_negative_numbers_has_its_sign() -> None:
    found = special.beta([-2.5, -0.5, -2.5, 1.0, -7.0], [3.0, 0.25, 0.5, -7.0, 2.0])
    wanted = [-16 / 15, 2.6220575542921196, 0, -1 / 7, 1 / 42]
    np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_products_with_logarithms_at_zero() -> None:
    x, y = np.array([0.0, 0.0, 0.0, 2.0]), np.array([0.0, np.inf, np.nan, 3.0])
    np.testing.assert_array_equal(special.xlogy(x, y), [0, 0, np.nan, 2 * np.log(3)])
    np.testing.assert_array_equal(special.xlog1py(x, y), [0, 0, np.nan, 2 * np.log1p(3)])
    np.testing.assert_array_equal(
        special.rel_entr([0.0, -1, 1, 1], [0.0, 1, 0, 1]), [0, np.inf, np.inf, 0]
    )
    np.testing.assert_array_equal(
        special.kl_div([0.0, -1, 1, 1], [3.0, 1, 0, 1]), [3, np.inf, np.inf, 0]
    )
    assert special.rel_entr(1e300, 1e-300) == 1e300 * (np.log(1e300) - np.log(1e-300))


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("erf", -6, 6), ("erfc", -6, 26), ("erfcx", -26, 60), ("erfinv", -1, 1), ("erfcinv", 0, 2),
        ("ndtr", -5, 8), ("ndtri", 0, 1), ("log_ndtr", -300, 4), ("i0", -700, 700),
        ("i1", -700, 700),
        ("i0e", -2000, 2000), ("i1e", -2000, 2000), ("gamma", -20, 170), ("gammaln", 0, 5000),
        ("gammaln", -20, 0), ("digamma", -20, 0), ("digamma", 0, 50), ("expit", -50, 50),
        ("j0", -100, 100), ("j1", -100, 100), ("y0", 0, 100), ("y1", 0, 100),
        ("exp1", 0, 700), ("expi", -50, 700), ("logit", 0, 1), ("log_expit", -50, 50),
        ("entr", 0, 50),
    ],
)  # fmt: skip
def test_values_are_scipys(name: str, low: float, high: float) -> None:
    """Near zeros inside of the range as precise as numbers near 1 are."""
    x = np.random.default_rng(3).uniform(low, high, 4000)
    wanted = getattr(scipy.special, name)(x)
    floor = 1.0 if name in ("gammaln", "digamma", "expi", "j0", "j1", "y0", "y1") else 0.0
    bound = 4e-15 * np.maximum(np.abs(wanted), floor)
    if name in ("erfc", "erfcx", "ndtr", "log_ndtr", "gamma"):  # SciPy rounds x² or log(x**x)
        bound *= 1 + x * x
    if name == "expi":  # SciPy is up to 180 ulp off near 40
        bound *= 16
    if name in ("gammaln", "digamma") and low < 0:  # poles: the distance from them is rounded
        bound *= 1 + 1 / np.abs(x - np.round(x))
    assert (np.abs(getattr(special, name)(x) - wanted) <= bound).all()


ELSEWHERE = {"polygamma", "gammainc", "gammaincc", "betainc", "zeta"}


@pytest.mark.parametrize("name", sorted(set(special.__all__) - ELSEWHERE))
def test_traced_values_are_those_of_the_eager_run(name: str) -> None:
    function = getattr(special, name)
    x, y = np.array([[0.25, 0.5, 0.9]]), np.array([[0.125], [0.75]])
    two = name in ("beta", "betaln", "kl_div", "rel_entr", "xlog1py", "xlogy")
    assert_traced_equals_eager(function, *((x, y) if two else (x,)))


def test_softmax_and_its_relatives() -> None:
    x = np.array([[1.0, 2.0, -np.inf], [1000.0, 1000.0, 999.0]])
    np.testing.assert_allclose(special.softmax(x, axis=1).sum(axis=1), 1, rtol=1e-15)
    np.testing.assert_allclose(np.exp(special.log_softmax(x, 1)), special.softmax(x, 1), rtol=1e-14)
    np.testing.assert_allclose(special.logsumexp(x, 1), np.logaddexp.reduce(x, 1), rtol=1e-15)
    assert special.logsumexp(x, axis=1, keepdims=True).shape == (2, 1)
    assert special.logsumexp([-np.inf, -np.inf]) == -np.inf
    assert special.logsumexp([np.inf, 1.0]) == np.inf
    assert special.logsumexp([np.inf, 800.0]) == np.inf
    np.testing.assert_allclose(special.logsumexp([1.0, 2, 5e3], b=[1.0, -1, 0]), np.nan)
    np.testing.assert_allclose(
        special.logsumexp([2.0, 1, 5e3], b=[1, 2, 0]), np.log(np.e**2 + 2 * np.e)
    )
    assert special.softmax(np.array([1, 2], np.float32)).dtype == np.float32


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([], None), ([0.0, -40.0], None), ([0.0, -40.0, -41.0, 0.0], None), ([1.0, 1.0], [1, -1]),
        ([1.0, 1.0, 0.0], [1, -1, 1]), ([1.0, 2.0], [1, -1]), ([800.0, np.inf], [1.0, -1.0]),
        ([0.0, 0.0], [0.0, 0.0]), ([np.inf, -np.inf], None), ([np.nan, 1.0], None),
        ([-1e300, -800.0], None), ([1.0, 2.0, 3.0], [1.0, -1.0, 2.0]), ([5.0, 800.0], [1.0, 0.0]),
    ],
)  # fmt: skip
def test_logsumexp_is_scipys(a: list[float], b: list[float] | None) -> None:
    with np.errstate(all="ignore"):
        wanted = scipy.special.logsumexp(a, b=b)
    np.testing.assert_allclose(special.logsumexp(a, b=b), wanted, rtol=1e-15)
    operands = (np.array(a),) if b is None else (np.array(a), np.array(b))
    jitted = tracegraph.jit(lambda a, b=None: special.logsumexp(a, b=b), device="host")
    np.testing.assert_allclose(jitted(*operands), wanted, rtol=1e-15)


def test_logsumexp_of_nothing_and_its_dtypes() -> None:
    assert special.logsumexp(np.zeros((0, 3), np.float32), axis=0).tolist() == [-np.inf] * 3
    assert special.logsumexp(np.zeros((3, 0)), axis=1, keepdims=True).shape == (3, 1)
    assert special.softmax(np.zeros((3, 0)), axis=1).shape == (3, 0)
    assert special.log_softmax(np.zeros((3, 0)), axis=1).shape == (3, 0)
    a = np.array([1, 2], np.float32)
    for b in (np.array([1.0, 2.0]), [1, 2], np.array([1, 2]), np.float32(2), 2.0, None):
        found = special.logsumexp(a, b=b)
        assert found.dtype == scipy.special.logsumexp(a, b=b).dtype
    wide = special.logsumexp(np.zeros((2, 1)), b=np.ones((1, 3)), axis=1)
    np.testing.assert_allclose(wide, np.log([3.0, 3.0]))


def test_the_gradient_of_logsumexp_is_softmax() -> None:
    x = np.array([1.0, 3.0, 2.0])
    np.testing.assert_allclose(
        tracegraph.grad(special.logsumexp)(x), special.softmax(x), rtol=1e-15
    )


def test_special_functions_run_in_loops() -> None:
    def quantile(p: Any) -> Any:
        """Newton's iteration for ndtr(x) = p."""

        def step(i: Any, x: Any) -> Any:
            return x - (special.ndtr(x) - p) * np.sqrt(2 * np.pi) * np.exp(0.5 * x * x)

        return tracegraph.fori_loop(0, 8, step, 0 * p)

    p = np.array([0.1, 0.5, 0.8])
    found = tracegraph.jit(quantile, device="host")(p)
    np.testing.assert_allclose(found, special.ndtri(p), rtol=1e-14, atol=1e-16)


@pytest.mark.parametrize("name", ["erf", "expit", "zeta", "betaln", "betainc", "polygamma"])
def test_of_scalars_there_is_a_scalar(name: str) -> None:
    operands = {"betaln": (2.0, 3.0), "betainc": (2.0, 3.0, 0.5), "polygamma": (1, 2.5)}
    found = getattr(special, name)(*operands.get(name, (2.0,)))
    assert type(found) is np.float64
