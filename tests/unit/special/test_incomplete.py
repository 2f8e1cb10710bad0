"""Incomplete gamma and beta functions, the Hurwitz zeta function, complete elliptic integrals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph import special
from tracegraph.errors import DerivativeError

# computed with 50 digits
GAMMA = [
    (1e-05, 0.5, 0.9999944022347146, 5.59776528542266e-06),
    (0.3, 0.01, 0.27924099635901484, 0.7207590036409851),
    (2.5, 0.75, 0.08693018545560453, 0.9130698145443955),
    (12.0, 15.5, 0.8462173186603119, 0.15378268133968806),
    (150.0, 145.0, 0.34990482407502904, 0.6500951759249709),
    (5000.0, 5100.0, 0.9206711189223811, 0.07932888107761897),
    (807.0, 439.5, 1.2934262449265477e-55, 1.0),
    (95390000.0, 95310000.0, 1.2709281228621127e-16, 0.9999999999999999),
]
"""a, x, the lower and the upper function."""

BETA = [
    (0.5, 0.25, 0.75, 0.44551489018313123),
    (3.0, 7.5, 0.125, 0.10534232870043789),
    (40.0, 25.0, 0.625, 0.555502053394829),
    (2.0, 0.01, 0.9, 0.013967644055587024),
    (300.0, 500.0, 0.375, 0.5024283443280131),
    (0.001, 30.0, 0.25, 0.999999978091442),
    (100000.0, 100000.0, 0.5, 0.5),
]
ZETA = [
    (2.0, 1.0, 1.6449340668482264),
    (1.0009765625, 0.5, 1025.9648322260853),
    (3.5, 12.25, 0.0008429909616497913),
    (40.0, 0.25, 1.2089258196146292e24),
    (7.0, 100000.0, 1.66671666725e-31),
]
ELLIPTIC = [
    (-1000000000.0, 0.0003715020798104295, 31622.776795340527),
    (-3.5, 1.04156071196962, 2.5312342973594326),
    (-0.001, 1.5704038484531506, 1.5711889522761804),
    (0.25, 1.685750354812596, 1.4674622093394272),
    (0.9375, 2.8012060846652043, 1.0723027218946042),
    (0.9999999, 9.445342397995795, 1.000000447267125),
]
"""m, and the integrals of the first and the second kind."""

inf, nan = np.inf, np.nan


@pytest.mark.parametrize(("a", "x", "lower", "upper"), GAMMA)
def test_incomplete_gamma_functions(a: float, x: float, lower: float, upper: float) -> None:
    rounded = 3e-14 if lower > 1e-30 else 1e-12  # SciPy rounds the exponents of tails
    np.testing.assert_allclose(special.gammainc(a, x), lower, rounded)
    np.testing.assert_allclose(special.gammaincc(a, x), upper, rtol=3e-14)


@pytest.mark.parametrize(("a", "b", "x", "wanted"), BETA)
def test_the_incomplete_beta_function(a: float, b: float, x: float, wanted: float) -> None:
    np.testing.assert_allclose(special.betainc(a, b, x), wanted, rtol=1e-13)


@pytest.mark.parametrize(("x", "q", "wanted"), ZETA)
def test_zeta(x: float, q: float, wanted: float) -> None:
    np.testing.assert_allclose(special.zeta(x, q), wanted, rtol=2e-15)
    if q == 1:
        assert special.zeta(x) == special.zeta(x, q)


@pytest.mark.parametrize(("m", "first", "second"), ELLIPTIC)
def test_elliptic_integrals(m: float, first: float, second: float) -> None:
    np.testing.assert_allclose(special.ellipk(m), first, rtol=2e-15)
    np.testing.assert_allclose(special.ellipe(m), second, rtol=4e-15)


LIMITS: list[tuple[str, tuple[float, ...], float]] = [
    ("gammainc", (0, 1), 1), ("gammainc", (1, 0), 0), ("gammainc", (0, 0), nan),
    ("gammainc", (inf, 1), 0), ("gammainc", (1, inf), 1), ("gammainc", (inf, inf), nan),
    ("gammainc", (-1, 1), nan), ("gammainc", (1, -1), nan), ("gammainc", (nan, 0), nan),
    ("gammaincc", (0, 1), 0), ("gammaincc", (1, 0), 1), ("gammaincc", (inf, 1), 1),
    ("gammaincc", (1, inf), 0), ("gammaincc", (1e300, 1), 1), ("gammaincc", (0.5, 1e300), 0),
    ("betainc", (0, 0, 0.5), nan), ("betainc", (0, 1, 0.5), 1), ("betainc", (1, 0, 0.5), 0),
    ("betainc", (2, 3, 0), 0), ("betainc", (2, 3, 1), 1), ("betainc", (2, 3, 1.5), nan),
    ("betainc", (2, 3, -1), nan), ("betainc", (inf, 1, 0.5), 0), ("betainc", (1, inf, 0.5), 1),
    ("betainc", (inf, inf, 0.5), nan), ("betainc", (1, 1, nan), nan),
    ("betainc", (0, 1, 0), 0), ("betainc", (inf, 1, 1), 1), ("betainc", (0, 0, 1), nan),
    ("zeta", (1, 2), inf), ("zeta", (2, 0), inf), ("zeta", (0.5, 2), nan),
    ("zeta", (2.5, -1.5), nan), ("zeta", (2.5, -2), inf), ("zeta", (1, nan), inf),
    ("zeta", (inf, 2), 0), ("zeta", (inf, 1), 1), ("zeta", (inf, 0.5), inf), ("zeta", (2, inf), 0),
    ("zeta", (nan, 2), nan), ("zeta", (1e7, 1), 1),
    ("ellipk", (1,), inf), ("ellipk", (1.5,), nan), ("ellipk", (-inf,), 0), ("ellipk", (inf,), nan),
    ("ellipe", (1,), 1), ("ellipe", (1.5,), nan), ("ellipe", (-inf,), inf), ("ellipe", (nan,), nan),
]  # fmt: skip


@pytest.mark.parametrize(("name", "operands", "wanted"), LIMITS)
def test_limits(name: str, operands: tuple[float, ...], wanted: float) -> None:
    np.testing.assert_array_equal(getattr(special, name)(*operands), wanted)


def test_both_incomplete_gamma_functions_add_to_one() -> None:
    rng = np.random.default_rng(5)
    a = 10 ** rng.uniform(-6, 8, 5000)
    x = np.abs(a * (1 + rng.normal(0, 3, 5000) / np.sqrt(a + 1)))
    lower, upper = special.gammainc(a, x), special.gammaincc(a, x)
    np.testing.assert_allclose(lower + upper, 1, rtol=2e-14)
    assert ((lower >= 0) & (upper >= 0)).all()


def test_the_incomplete_beta_function_is_symmetric() -> None:
    rng = np.random.default_rng(6)
    a, b = 10 ** rng.uniform(-2, 4, (2, 5000))
    x = rng.integers(1, 64, 5000) / 64
    total = special.betainc(a, b, x) + special.betainc(b, a, 1 - x)
    np.testing.assert_allclose(total, 1, rtol=2e-13)


@pytest.mark.parametrize(
    ("name", "operands"),
    [
        ("gammainc", ([[0.5], [3.0]], [0.25, 4.0])),
        ("gammaincc", ([[0.5], [3.0]], [0.25, 4.0])),
        ("betainc", ([[0.5], [3.0]], 2.0, [0.25, 0.75])),
        ("zeta", (2.5, [[0.5], [3.0]])),
        ("ellipk", ([0.0, 0.5, -3.0],)),
        ("ellipe", ([0.0, 0.5, -3.0],)),
    ],
)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_traced_and_mapped_values_are_the_eager_ones(name: str, operands: Any, dtype: Any) -> None:
    function = getattr(special, name)
    arrays = [np.array(x, dtype) for x in operands]
    wanted = function(*arrays)
    assert wanted.dtype == dtype
    np.testing.assert_array_equal(tracegraph.jit(function, device="host")(*arrays), wanted)
    rows = [np.broadcast_to(x, wanted.shape) for x in arrays]
    np.testing.assert_array_equal(tracegraph.vmap(function)(*rows), wanted)


def test_integers_become_floating_point() -> None:
    assert special.betainc(np.int8(1), np.int8(2), np.int16(1)).dtype == np.float32
    assert special.betainc(1, 2, np.float32(0.5)).dtype == np.float32
    assert special.betainc(1, 2, 0.5) == 0.75
    with pytest.raises(
        TypeError, match=r"betainc is not defined for ~i64\[\], ~i64\[\], ~c128\[\]"
    ):
        special.betainc(1, 2, 1j)


def test_slopes_are_densities() -> None:
    x = np.array([0.25, 0.5, 0.875])
    gamma = tracegraph.grad(lambda x: np.sum(special.gammainc(3.0, x)))(x)
    np.testing.assert_allclose(gamma, x**2 * np.exp(-x) / 2, rtol=1e-14)
    beta = tracegraph.grad(lambda x: np.sum(special.betainc(2.0, 3.0, x)))(x)
    np.testing.assert_allclose(beta, 12 * x * (1 - x) ** 2, rtol=1e-14)


def test_slopes_of_elliptic_integrals_are_precise_near_zero() -> None:
    m = np.array([0.0, 1e-9, 0.0199, 0.0201])
    first = tracegraph.grad(lambda m: np.sum(special.ellipk(m)))(m)
    second = tracegraph.grad(lambda m: np.sum(special.ellipe(m)))(m)
    squares = np.cumprod([1.0, *(((2 * n - 1) / (2 * n)) ** 2 for n in range(1, 30))])
    powers = [n * c * m ** (n - 1) for n, c in enumerate(squares) if n]
    np.testing.assert_allclose(first, np.pi / 2 * np.sum(powers, axis=0), rtol=1e-13)
    of_second = [-p / (2 * n - 1) for n, p in enumerate(powers, 1)]
    np.testing.assert_allclose(second, np.pi / 2 * np.sum(of_second, axis=0), rtol=1e-13)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda a: special.gammainc(a, 1.0), "only in the last operand x"),
        (lambda a: special.betainc(2.0, a, 0.5), "only in the last operand x"),
        (lambda x: special.zeta(x + 2, 3.0), "only in q"),
    ],
)
def test_there_is_no_derivative_in_parameters(function: Any, reason: str) -> None:
    with pytest.raises(DerivativeError, match=reason):
        tracegraph.grad(function)(1.5)
