"""`numpy.linalg` as CUDA graphs: residuals of all sizes, inside loops and branches, in lanes."""

from __future__ import annotations

from typing import Any

import linear_algebra_cases
import numpy as np
import pytest
from numpy_agreement import assert_close

import tracegraph
from tracegraph import tree

ARGUMENTS = linear_algebra_cases.ARGUMENTS
ILLEGAL = ("(r)", "v[:3]", "(v, v)", "(r, v)", "ind=0", "(v)", "full")
"""What marks expressions that NumPy refuses, or that are only refused when traced."""

LEGAL = [
    each
    for each in linear_algebra_cases.TABLES
    if not any(text in each for text in ILLEGAL)
    and each not in ("xp.linalg.solve(r, b)", "xp.linalg.matrix_power(r, 2)")
]


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
