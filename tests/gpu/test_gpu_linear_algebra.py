"""`numpy.linalg` as CUDA graphs: residuals of all sizes, inside loops and branches, in lanes."""

from __future__ import annotations

import warnings
from typing import Any

import linear_algebra_cases
import numpy as np
import pytest
from numpy_agreement import assert_close

import tracegraph
from tracegraph import linalg, tree

ARGUMENTS = linear_algebra_cases.ARGUMENTS


def is_legal(expression: str) -> bool:
    """Whether NumPy takes it."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            eval(expression, {"xp": np, "np": np, **ARGUMENTS})
        except (TypeError, ValueError):
            return False
    return True


LEGAL = [each for each in linear_algebra_cases.TABLES if is_legal(each)]


def on_gpu(function: Any, *arguments: Any) -> Any:
    return tree.map(np.asarray, tracegraph.jit(function, device="cuda")(*arguments))


@pytest.mark.parametrize("expression", LEGAL)
def test_expressions_equal_numpys(expression: str) -> None:
    def function(values: Any) -> Any:
        return eval(expression, {"xp": np, "np": np, **values})

    with np.errstate(all="ignore"):
        expected = tree.leaves(function(ARGUMENTS))
    found = tree.leaves(on_gpu(function, ARGUMENTS))
    for got, wanted in zip(found, map(np.asarray, expected), strict=True):
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        assert_close(got / 64, wanted / 64)  # sums are of another order


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("n", [3, 32, 64, 100, 300])
def test_residuals_are_small(n: int, dtype: str) -> None:
    rng = np.random.default_rng(n)
    a = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if "c" in dtype else 0)
    a = a.astype(dtype)
    b = np.ones((n, 2), dtype)

    def program(a: Any, b: Any) -> Any:
        spd = a @ np.conj(a.T) + n * np.eye(n, dtype=dtype)
        return np.linalg.qr(a), np.linalg.solve(a, b), spd, np.linalg.cholesky(spd)

    (q, r), x, spd, lower = on_gpu(program, a, b)
    unit = 30 * n * np.finfo(dtype).eps
    assert np.abs(q @ r - a).max() <= unit * np.abs(a).max()
    assert np.abs(np.conj(q.T) @ q - np.eye(n)).max() <= unit
    assert np.abs(a @ x - b).max() <= unit * (np.abs(a) @ np.abs(x) + 1).max()
    assert np.abs(lower @ np.conj(lower.T) - spd).max() <= unit * np.abs(spd).max()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("n", [1, 2, 3, 8, 33, 64, 129])
def test_spectra_have_small_residuals(n: int, dtype: str) -> None:
    rng = np.random.default_rng(n)
    a = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if "c" in dtype else 0)
    a = a.astype(dtype)
    singular = np.ones((n, max(n // 2, 1)), dtype)

    def program(a: Any, singular: Any) -> Any:
        h = a + np.conj(a.T)
        return h, np.linalg.eigh(h), np.linalg.svd(a), np.linalg.svd(singular, False)

    h, (w, v), *found = on_gpu(program, a, singular)
    unit = 30 * max(n, 3) * np.finfo(dtype).eps
    assert np.abs(h @ v - v * w).max() <= unit * np.abs(h).max() * n**0.5
    assert np.abs(np.conj(v.T) @ v - np.eye(n)).max() <= unit
    assert (np.diff(w) >= 0).all()
    for (u, s, vh), x in zip(found, (a, singular), strict=True):
        assert (np.diff(s) <= 0).all()
        assert np.abs(u * s @ vh - x).max() <= unit * np.abs(x).max() * n**0.5
        assert np.abs(np.conj(u.T) @ u - np.eye(u.shape[1])).max() <= unit
        assert np.abs(vh @ np.conj(vh.T) - np.eye(vh.shape[0])).max() <= unit


def test_batches_of_spectra_with_one_that_is_not_finite() -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((500, 12, 12))
    a[7] = np.nan
    w, s = on_gpu(lambda a: (np.linalg.eigvalsh(a), np.linalg.svdvals(a)), a)
    assert np.isnan(w[7]).all()
    assert np.isnan(s[7]).all()
    others = np.arange(500) != 7
    np.testing.assert_allclose(w[others], np.linalg.eigvalsh(a[others]), atol=1e-12)
    np.testing.assert_allclose(s[others], np.linalg.svdvals(a[others]), atol=1e-12)


def test_more_of_linear_algebra() -> None:
    rng = np.random.default_rng(1)
    a = rng.standard_normal((3, 20, 20)) + 9 * np.eye(20)
    b = rng.standard_normal((3, 20, 2))
    d = rng.standard_normal((3, 3, 20)) + np.array([0, 4, 0])[:, None, None]

    def program(a: Any, b: Any, d: Any) -> Any:
        return (
            linalg.solve_triangular(a, b),
            linalg.lu_solve(linalg.lu_factor(a), b, 1),
            linalg.cho_solve(linalg.cho_factor(a @ a.mT), b),
            linalg.tridiagonal_solve(*d, b),
            linalg.expm(a / 4),
            linalg.cg(a[0] @ a[0].T, b[0, :, 0], rtol=1e-12),
            linalg.bicgstab(a[0], b[0, :, 0], rtol=1e-12),
            linalg.gmres(a[0], b[0, :, 0], rtol=1e-12),
            tracegraph.grad(lambda b: linalg.cg(a[0] @ a[0].T, b)[0].sum())(b[0, :, 0]),
        )

    found, expected = (tree.leaves(f(a, b, d)) for f in (lambda *x: on_gpu(program, *x), program))
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)


def test_spectra_run_in_loops_and_lanes() -> None:
    a = np.random.default_rng(2).standard_normal((4, 5, 5))

    def program(a: Any) -> Any:
        def step(carry: Any, k: Any) -> Any:
            w, v = np.linalg.eigh(carry @ carry.T + k)
            return v * np.sqrt(w) @ v.T, np.linalg.svdvals(carry)

        return tracegraph.scan(step, a, np.arange(3.0))

    found = on_gpu(tracegraph.vmap(program), a)
    expected = zip(*map(program, a), strict=True)
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, np.stack(wanted), rtol=1e-9, atol=1e-9)


def test_batches_of_small_matrices() -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((10_000, 16, 16)) + 4 * np.eye(16)
    b = rng.standard_normal((10_000, 16, 1))
    np.testing.assert_allclose(on_gpu(np.linalg.solve, a, b), np.linalg.solve(a, b), 1e-9, 1e-9)
    spd = a @ a.mT
    lower = on_gpu(np.linalg.cholesky, spd)
    np.testing.assert_allclose(lower, np.linalg.cholesky(spd), 1e-9, 1e-9)


def test_they_run_in_loops_and_branches() -> None:
    a, b = ARGUMENTS["a"], ARGUMENTS["b"]

    def program(a: Any, b: Any) -> Any:
        x = tracegraph.fori_loop(0, 3, lambda i, x: x + np.linalg.solve(a, b - a @ x), b * 0)
        _, dets = tracegraph.scan(lambda c, k: (c, np.linalg.det(a + k)), 0, np.arange(3.0))
        found = tracegraph.cond(
            dets[0] > 0, lambda: np.linalg.cholesky(a @ a.T), lambda: np.linalg.inv(a)
        )
        return x, dets, found

    found, expected = on_gpu(program, a, b), program(a, b)
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, 1e-11, 1e-11)
