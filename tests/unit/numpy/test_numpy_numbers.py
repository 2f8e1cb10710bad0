"""Statistics, polynomials, bits and special values, traced and jitted, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph as tg
import tracegraph.numpy as tnp
from tests.cases.numbers import ARGUMENTS, TABLES
from tests.helpers.numpy_agreement import assert_jitted_equals_numpy
from tracegraph import errors


@pytest.mark.parametrize("expression", TABLES)
def test_expressions_equal_numpys(expression: str) -> None:
    assert_jitted_equals_numpy(expression, ARGUMENTS)


def test_the_dtype_of_real_if_close_must_be_known() -> None:
    f: Any = tg.jit(np.real_if_close, device="host")
    with pytest.raises(errors.UnsupportedByTracerError, match=r"write x\.real"):
        f(ARGUMENTS["c"])
    x = tg.asarray(np.array([1 + 1e-18j, 2]))
    assert tnp.real_if_close(x).dtype == np.float64
    assert tnp.real_if_close(x + 1j).dtype == np.complex128


def test_leading_zeros_of_a_traced_polynomial_stay() -> None:
    f: Any = tg.jit(np.polymul, device="host")
    np.testing.assert_array_equal(np.asarray(f(np.array([0.0, 1.0]), np.array([2.0]))), [0, 2])


def test_weights_of_observations_have_their_shape() -> None:
    for weights in (np.ones(3), np.ones((2, 11))):
        f: Any = tg.jit(lambda x, w: np.cov(x, aweights=w), device="host")
        with pytest.raises(RuntimeError, match="aweights"):
            f(ARGUMENTS["x"], weights)


@pytest.mark.parametrize(
    "keywords",
    [{}, {"w": "w"}, {"full": True}, {"cov": True}, {"cov": "unscaled", "w": "w"}, {"rcond": 0.01}],
    ids=str,
)
@pytest.mark.parametrize("columns", [(), (3,)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_polynomials_are_fitted_as_by_numpy(keywords: Any, columns: Any, dtype: Any) -> None:
    rng = np.random.default_rng(1)
    x, y = np.arange(-9, 21).astype(dtype), rng.integers(-9, 9, (30, *columns)).astype(dtype)
    w = rng.uniform(0.5, 2, 30).astype(np.float32 if dtype == np.float32 else np.float64)

    def fit(x: Any, y: Any, w: Any) -> Any:
        given = {k: w if v == "w" else v for k, v in keywords.items()}
        return np.polyfit(x, y, 3, **given)

    wanted, found = fit(x, y, w), tg.jit(fit, device="host")(x, y, w)
    for one, other in zip(tg.tree.leaves(found), tg.tree.leaves(wanted), strict=True):
        other = np.asarray(other)
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        size = np.abs(other).max(initial=1e-3)
        tolerance = 1e-4 if dtype == np.float32 else 1e-11
        np.testing.assert_allclose(np.asarray(one), other, tolerance, tolerance * size)


def test_a_fit_is_differentiable() -> None:
    x = np.linspace(0, 1, 9)

    def first(y: Any) -> Any:
        return np.polyfit(x, y, 2)[0]

    y = np.cos(3 * x)
    wanted = [first(row) for row in np.eye(9)]  # a fit is linear in y
    np.testing.assert_allclose(tg.grad(first)(y), wanted, atol=1e-11)


@pytest.mark.parametrize(
    ("x", "y", "keywords", "error", "message"),
    [
        (np.ones(3), np.ones(3), {"deg": -1}, ValueError, "expected deg >= 0"),
        (np.ones((3, 1)), np.ones(3), {"deg": 1}, TypeError, "1D vector for x"),
        (np.ones(0), np.ones(0), {"deg": 1}, TypeError, "non-empty vector"),
        (np.ones(3), np.ones((3, 1, 1)), {"deg": 1}, TypeError, "1D or 2D array for y"),
        (np.ones(3), np.ones(4), {"deg": 1}, TypeError, "same length"),
        (np.ones(3), np.ones(3), {"deg": 1, "w": np.ones(4)}, TypeError, "w and y"),
        (np.arange(3.0), np.ones(3), {"deg": 2, "cov": True}, ValueError, "must exceed order"),
    ],
)
def test_fits_fail_as_numpys(x: Any, y: Any, keywords: Any, error: Any, message: str) -> None:
    for fit in (np.polyfit, tg.jit(lambda x, y: np.polyfit(x, y, **keywords), device="host")):
        with pytest.raises(error, match=message):
            fit(x, y) if fit is not np.polyfit else fit(x, y, **keywords)


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32, np.float64, np.complex64])
def test_a_polynomial_has_the_given_roots(dtype: Any) -> None:
    roots = np.array([3, 1, 2, -1]).astype(dtype)
    found, wanted = np.asarray(tg.jit(np.poly, device="host")(roots)), np.poly(roots)
    assert found.dtype == (dtype if dtype == np.complex64 else wanted.dtype)
    np.testing.assert_array_equal(found, wanted)
    slope = tg.grad(lambda r: np.poly(r)[-1])(np.array([2.0, 3.0, 5.0]))
    np.testing.assert_array_equal(slope, [-15, -10, -6])


def test_the_polynomial_of_a_traced_matrix_is_refused() -> None:
    f: Any = tg.jit(np.poly, device="host")
    with pytest.raises(errors.UnsupportedByTracerError, match="pass a vector of roots"):
        f(np.eye(2))


@pytest.mark.parametrize(
    ("u", "v"),
    [
        ([2.0, 5.0, 4.0], [1.0, 1.0]),
        ([3.0, 0.5, -2.0, 7.0, 1.0], [2.0, -1.0, 0.5]),
        ([1.0, 2.0], [1.0, 2.0, 3.0]),
        ([4.0, 2.0, 9.0], [2.0]),
        (np.array([2, 5, 4]), np.array([1, 1])),
        (np.array([2, 5j, 4], np.complex64), np.array([1, 1j], np.complex64)),
    ],
)
def test_quotients_and_remainders_of_polynomials(u: Any, v: Any) -> None:
    u, v = np.array(u), np.array(v)
    found = tg.jit(np.polydiv, device="host")(u, v)
    for one, other in zip(map(np.asarray, found), np.polydiv(u, v), strict=True):
        assert one.dtype == other.dtype
        same = np.pad(other, (one.size - other.size, 0))  # leading zeros stay
        np.testing.assert_allclose(one, same, rtol=1e-6, atol=1e-13)


def test_a_remainder_with_leading_zeros_keeps_its_length() -> None:
    f: Any = tg.jit(np.polydiv, device="host")
    quotient, rest = f(np.array([1.0, 3.0, 3.0, 1.0]), np.array([1.0, 2.0, 1.0]))
    np.testing.assert_array_equal(np.asarray(quotient), [1, 1])
    np.testing.assert_array_equal(np.asarray(rest), [0, 0])
    with pytest.raises(ValueError, match=r"polydiv takes vectors .* got shapes \(2, 1\), \(1,\)"):
        f(np.ones((2, 1)), np.ones(1))


def test_missing_roots_name_a_way_out() -> None:
    f: Any = tg.jit(np.roots, device="host")
    with pytest.raises(
        errors.UnsupportedByTracerError, match=r"pure_callback\(lambda p: numpy\.roots\(p\)"
    ):
        f(np.ones(3))
