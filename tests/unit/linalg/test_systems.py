"""`tracegraph.linalg`: factors, tridiagonal systems, exponentials; values, errors, derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import tracegraph
from tests.helpers.compiled import on_host
from tracegraph import linalg

RNG = np.random.default_rng(5)
DTYPES = ["float32", "float64", "complex64", "complex128"]
each_dtype = pytest.mark.parametrize("dtype", DTYPES)


def random(*shape: int, dtype: Any = np.float64) -> Any:
    x = RNG.standard_normal(shape)
    is_complex = np.dtype(dtype).kind == "c"
    return np.asarray(x + 1j * RNG.standard_normal(shape) if is_complex else x, dtype)


def regular(*shape: int, dtype: Any = np.float64) -> Any:
    return random(*shape, dtype=dtype) + 4 * np.eye(shape[-1], dtype=dtype)


def assert_near(got: Any, wanted: Any, units: float = 100) -> None:
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    unit = units * np.finfo(wanted.dtype).eps
    np.testing.assert_allclose(got, wanted, rtol=unit, atol=unit)


def both(function: Any, *arguments: Any) -> list[Any]:
    """What runs at once gives, and what is jitted."""
    return [function(*arguments), on_host(function, *arguments)]


@each_dtype
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("trans", [0, 1, 2, "N", "T", "C"])
def test_triangular_systems(dtype: str, lower: bool, trans: Any) -> None:
    a = regular(2, 5, 5, dtype=dtype)
    for unit in (False, True):
        used = np.tril(a) if lower else np.triu(a)
        if unit:
            i = np.arange(5)
            a, used = a / 4, used / 4
            used[:, i, i] = 1
        turned = {"N": used, "T": used.mT, "C": np.conj(used.mT)}[
            "NTC"[trans] if trans in (0, 1, 2) else trans
        ]
        for b in (random(5, 3, dtype=dtype), random(2, 5, 1, dtype=dtype), random(5, dtype=dtype)):

            def solve(a: Any, b: Any, unit: bool = unit) -> Any:
                return linalg.solve_triangular(a, b, trans, lower, unit)

            for x in both(solve, a, b):
                right = turned @ x if b.ndim > 1 else (turned @ x[..., None])[..., 0]
                assert_near(right, np.broadcast_to(b, right.shape), 400)


@each_dtype
@pytest.mark.parametrize("lower", [False, True])
def test_cholesky_factors(dtype: str, lower: bool) -> None:
    c = regular(2, 4, 4, dtype=dtype)
    a, b = c @ np.conj(c.mT), random(4, 2, dtype=dtype)
    one_triangle = np.tril(a) if lower else np.triu(a)
    for factor in both(lambda a: linalg.cho_factor(a, lower)[0], one_triangle):
        product = factor @ np.conj(factor.mT) if lower else np.conj(factor.mT) @ factor
        assert_near(product / 32, a / 32)
    for x in both(lambda a, b: linalg.cho_solve(linalg.cho_factor(a, lower), b), one_triangle, b):
        assert_near(a @ x / 8, np.broadcast_to(b / 8, x.shape), 400)


@each_dtype
@pytest.mark.parametrize("trans", [0, 1, 2])
def test_lu_factors(dtype: str, trans: int) -> None:
    a = random(2, 5, 5, dtype=dtype) + 3 * np.roll(np.eye(5, dtype=dtype), 2, 0)
    turned = (a, a.mT, np.conj(a.mT))[trans]
    for b in (random(5, 3, dtype=dtype), random(2, 5, 1, dtype=dtype)):
        for x in both(lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b, trans), a, b):
            assert_near(turned @ x / 8, np.broadcast_to(b / 8, x.shape), 400)


@each_dtype
@pytest.mark.parametrize("shape", [(5, 5), (2, 5, 3), (3, 5), (0, 3)])
def test_lu_is_the_product_of_its_factors(dtype: str, shape: Any) -> None:
    a = random(*shape, dtype=dtype)
    for p, lower, upper in both(linalg.lu, a):
        assert p.dtype == a.real.dtype
        assert_near((p @ lower @ upper).astype(dtype), a)
        assert (np.abs(lower) <= 2**0.5 + 1e-6).all()
    for moved, upper in both(lambda a: linalg.lu(a, permute_l=True), a):
        assert_near(moved @ upper, a)


@each_dtype
def test_tridiagonal_systems(dtype: str) -> None:
    for n in (1, 2, 3, 40):
        dl, d, du = (random(2, n, dtype=dtype) for _ in range(3))
        d[:, n // 2] = 0  # elimination has to swap rows
        if n == 1:
            d += 1
        a = np.zeros((2, n, n), dtype)
        i = np.arange(n)
        a[:, i, i] = d
        a[:, i[1:], i[:-1]] = dl[:, 1:]
        a[:, i[:-1], i[1:]] = du[:, :-1]
        b = random(2, n, 3, dtype=dtype)
        for x in both(linalg.tridiagonal_solve, dl, d, du, b):
            size = (np.abs(a) @ np.abs(x)).max() + 1
            assert_near(a @ x / size, b / size)
        shared = on_host(linalg.tridiagonal_solve, dl[0], d[0], du[0], b)
        assert_near(a[0] @ shared / size, b / size, 1000)


def test_derivatives_of_tridiagonal_systems() -> None:
    diagonals = [random(4), random(4) + 4, random(4)]
    b, weights = random(4, 2), random(4, 2)

    def loss(dl: Any, d: Any, du: Any, b: Any) -> Any:
        return (linalg.tridiagonal_solve(dl, d, du, b) * weights).sum()

    def dense(dl: Any, d: Any, du: Any, b: Any) -> Any:
        place = np.arange(4)
        distance = place - place[:, None]
        a = np.where(distance == 0, d, 0) + np.where(distance == -1, dl[:, None], 0)
        a = a + np.where(distance == 1, du[:, None], 0)
        return (np.linalg.solve(a, b) * weights).sum()

    every = (0, 1, 2, 3)
    found = on_host(tracegraph.grad(loss, every), *diagonals, b)
    expected = on_host(tracegraph.grad(dense, every), *diagonals, b)
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-11, atol=1e-12)


@each_dtype
def test_exponentials(dtype: str) -> None:
    values = np.array([-3.0, -0.1, 0.0, 2.0])
    basis = regular(4, 4, dtype=dtype)
    inverse = np.linalg.inv(basis)
    for scale in (1e-9, 0.1, 1.0, 20.0):
        exponents = -np.abs(values) * scale
        a = np.asarray(basis * exponents @ inverse, dtype)
        expected = np.asarray(basis * np.exp(exponents) @ inverse, dtype)
        for found in both(linalg.expm, a):
            assert_near(found, expected, 1000 * max(1, scale))


def test_exponentials_of_rotations_of_all_sizes() -> None:
    angles = np.array([0, 1e-300, 1e-3, 1.0, 50.0, 3e5])
    a = angles[:, None, None] * np.array([[0.0, -1.0], [1.0, 0.0]])
    c, s = np.cos(angles), np.sin(angles)
    expected = np.stack([np.stack([c, -s], -1), np.stack([s, c], -1)], -2)
    for found in both(linalg.expm, a):
        np.testing.assert_allclose(found, expected, atol=1e-9)
        np.testing.assert_allclose(found[:4], expected[:4], atol=1e-15)
    assert np.isnan(on_host(linalg.expm, a * 10)[-1]).all()
    bad = np.stack([np.full((2, 2), np.nan), np.full((2, 2), np.inf), np.zeros((2, 2))])
    found = on_host(linalg.expm, bad)
    assert np.isnan(found[:2]).all()
    np.testing.assert_array_equal(found[2], np.eye(2))
    assert linalg.expm(np.zeros((0, 0))).shape == (0, 0)


def test_derivatives_of_exponentials_are_frechets() -> None:
    a, e = random(3, 3) * 4, random(3, 3)
    block = np.block([[a, e], [0 * a, a]])
    expected = linalg.expm(block)[:3, 3:]
    _, tangent = tracegraph.jvp(linalg.expm, (a,), (e,))
    np.testing.assert_allclose(tangent, expected, rtol=1e-10, atol=1e-10)
    weights = random(3, 3)
    gradient = on_host(tracegraph.grad(lambda a: (linalg.expm(a) * weights).sum()), a)
    np.testing.assert_allclose((gradient * e).sum(), (expected * weights).sum(), rtol=1e-10)


def test_they_run_in_loops_and_lanes() -> None:
    a, b = regular(3, 4, 4), random(3, 4)

    def program(a: Any, b: Any) -> Any:
        def step(carry: Any, k: Any) -> Any:
            x = linalg.lu_solve(linalg.lu_factor(a + k), carry)
            x = linalg.solve_triangular(a, x)
            return x, linalg.expm(a * 0.1)[0]

        ones = np.ones(4)
        x, rows = tracegraph.scan(step, b, np.arange(3.0))
        d = linalg.tridiagonal_solve(ones, 3 * ones, ones, x[:, None])
        return tracegraph.cond(b[0] > 0, lambda: d[:, 0], lambda: x), rows

    for got, wanted in zip(
        on_host(tracegraph.vmap(program), a, b),
        map(np.stack, zip(*[program(*each) for each in zip(a, b, strict=True)], strict=True)),
        strict=True,
    ):
        np.testing.assert_allclose(got, wanted, rtol=1e-10)


SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: linalg.solve_triangular(np.zeros((2, 2)), np.ones(2)), ValueError, "Singular"),
        (lambda: linalg.cho_factor(-np.eye(2)), ValueError, "not positive definite"),
        (lambda: linalg.cho_factor(np.ones((2, 3))), ValueError, "square"),
        (lambda: linalg.lu_solve(linalg.lu_factor(SINGULAR), np.ones(2)), ValueError, "Singular"),
        (lambda: linalg.lu_factor(np.ones(3)), ValueError, "two-dimensional"),
        (lambda: linalg.lu_factor(np.eye(2, dtype=np.float16)), TypeError, "float16"),
        (lambda: linalg.solve_triangular(np.eye(2), np.ones(3)), ValueError, "do not fit"),
        (lambda: linalg.solve_triangular(np.ones(2), np.ones(2)), ValueError, "needs matrices"),
        (lambda: linalg.solve_triangular(np.eye(2), np.ones(2), "H"), ValueError, "trans must"),
        (lambda: linalg.cho_solve((np.eye(2), True), np.ones(3)), ValueError, "do not fit"),
        (lambda: linalg.tridiagonal_solve(*np.ones((3, 2)), np.ones(2)), ValueError, "diagonals"),
        (lambda: linalg.tridiagonal_solve(*np.ones((3, 2)), np.ones((2, 1))), ValueError, "Singul"),
        (lambda: linalg.expm(np.ones((2, 3))), ValueError, "square"),
    ],
)
def test_errors_say_what_is_wrong(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_singular_matrix_spoils_no_other() -> None:
    a = np.stack([np.eye(2), SINGULAR, 2 * np.eye(2)])
    x = on_host(lambda a: linalg.lu_solve(linalg.lu_factor(a), np.array([1.0, 0.0])), a)
    np.testing.assert_array_equal(x[::2], [[1, 0], [0.5, 0]])
    assert not np.isfinite(x[1]).all()
    ones, d = np.ones((3, 2)), np.array([[3.0, 3.0], [1.0, 1.0], [3.0, 3.0]])
    x = on_host(linalg.tridiagonal_solve, ones, d, ones, ones[..., None])
    assert not np.isfinite(x[1]).all()
    np.testing.assert_allclose(x[::2], 0.25)


@each_dtype
@pytest.mark.parametrize("shape", [(1, 1), (40, 40), (9, 70, 70), (200, 3, 3), (2, 5, 3), (3, 5)])
def test_factors_and_pivots_are_those_of_lapack(dtype: str, shape: tuple[int, ...]) -> None:
    a = random(*shape, dtype=dtype)
    for factors, pivots in both(linalg.lu_factor, a):
        for one, packed, swaps in zip(
            a.reshape(-1, *shape[-2:]),
            factors.reshape(-1, *shape[-2:]),
            pivots.reshape(-1, min(shape[-2:])),
            strict=True,
        ):
            expected, rows, _ = scipy.linalg.get_lapack_funcs("getrf", (one,))(one)
            np.testing.assert_array_equal(swaps, rows)
            assert_near(packed, expected, 1000)


@pytest.mark.parametrize("count", [1, 3, 500])
def test_a_matrix_without_a_solution_leaves_the_others_alone(count: int) -> None:
    a = np.stack([np.array([[2.0, 1.0], [1.0, 3.0]])] * count + [np.ones((2, 2))])
    b = np.array([[3.0], [4.0]])
    found = on_host(np.linalg.solve, a, b)
    assert_near(found[:-1], np.ones((count, 2, 1)))
    assert not np.isfinite(found[-1]).any()
    with pytest.raises(np.linalg.LinAlgError):
        linalg.lu_solve(linalg.lu_factor(a), b)
    np.testing.assert_array_equal(on_host(np.linalg.det, a)[-1], 0)
    sign, size = on_host(np.linalg.slogdet, a)
    assert (sign[-1], size[-1]) == (0, -np.inf)


@pytest.mark.parametrize("trans", [0, 1])
def test_pivots_order_many_rows(trans: int) -> None:
    a, b = random(300, 300), random(300, 2)
    for x in both(lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b, trans), a, b):
        assert_near((a.T if trans else a) @ x, b, 1e6)


@each_dtype
def test_a_tridiagonal_system_without_a_solution_leaves_the_others_alone(dtype: str) -> None:
    n = 5
    dl, d, du = (np.ones((3, n), dtype) for _ in range(3))
    d *= 4
    dl[1], d[1], du[1] = 0, 0, 0
    b = random(3, n, 2, dtype=dtype)
    alone = [on_host(linalg.tridiagonal_solve, dl[i], d[i], du[i], b[i]) for i in (0, 2)]
    found = on_host(linalg.tridiagonal_solve, dl, d, du, b)
    assert_near(found[[0, 2]], np.stack(alone))
    assert not np.isfinite(found[1]).any()
    with pytest.raises(np.linalg.LinAlgError):
        linalg.tridiagonal_solve(dl, d, du, b)
    b[1], d[1] = np.nan, 4
    found = on_host(linalg.tridiagonal_solve, dl, d, du, b)
    assert_near(found[[0, 2]], np.stack(alone))
    assert np.isnan(found[1]).all()


def test_what_is_outside_of_a_tridiagonal_matrix_is_not_read() -> None:
    dl, d, du, b = random(2, 4), random(2, 4) + 4, random(2, 4), random(2, 4, 1)
    expected = on_host(linalg.tridiagonal_solve, dl, d, du, b)
    dl[:, 0] = du[:, -1] = np.nan
    np.testing.assert_array_equal(on_host(linalg.tridiagonal_solve, dl, d, du, b), expected)


def test_lanes_of_tridiagonal_systems() -> None:
    dl, d, du, b = random(3, 4), random(3, 4) + 4, random(3, 4), random(3, 4, 2)
    for axes in ((0, 0, 0, 0), (None, None, None, 0), (None, 0, None, 0), (0, 0, 0, None)):
        found = on_host(
            tracegraph.vmap(linalg.tridiagonal_solve, axes),
            *[x if axis == 0 else x[0] for x, axis in zip((dl, d, du, b), axes, strict=True)],
        )
        for lane in range(3):
            one = [
                x[lane if axis == 0 else 0] for x, axis in zip((dl, d, du, b), axes, strict=True)
            ]
            assert_near(found[lane], linalg.tridiagonal_solve(*one))
