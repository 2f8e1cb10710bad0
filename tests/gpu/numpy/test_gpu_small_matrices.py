"""Matrices of up to 128 rows by kernels of one block: residuals, hard matrices, loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.cases.hard_matrices import MATRICES
from tests.helpers.compiled import on_gpu
from tests.helpers.parameters import in_turn

DTYPES = ["float32", "float64", "complex64", "complex128"]
SIZES = [2, 8, 9, 16, 31, 33, 48, 64, 65, 100, 128]


def adjoint(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


def wide(x: Any) -> Any:
    return x.astype(np.complex128 if np.iscomplexobj(x) else np.float64)


def stacked(n: int, dtype: str) -> Any:
    return np.stack([np.asarray(kind(n, dtype), dtype) for kind in MATRICES.values()])


@pytest.mark.parametrize(("n", "dtype"), in_turn(SIZES, DTYPES, rounds=4))
def test_eigenvalues_and_vectors(dtype: str, n: int) -> None:
    a = stacked(n, dtype)
    h = np.tril(a) + adjoint(np.tril(a, -1))
    h[..., range(n), range(n)] = h[..., range(n), range(n)].real
    values, vectors = on_gpu(np.linalg.eigh, a)
    alone = on_gpu(np.linalg.eigvalsh, a)
    largest = np.abs(values).max(-1, keepdims=True)
    unit = 30 * max(n, 3) * float(np.finfo(dtype).eps)
    assert (np.abs(alone - values) <= unit * largest).all()
    assert (np.diff(values) >= 0).all()
    h, w, v = wide(h), wide(values)[:, None], wide(vectors)
    size = np.abs(h).max((1, 2), keepdims=True)
    least = 4 * n * float(np.finfo(dtype).smallest_subnormal)
    assert (np.abs(h @ (v / 64) - v * (w / 64)) <= unit * n**0.5 * size / 64 + least).all()
    assert (np.abs(adjoint(v) @ v - np.eye(n)) <= unit).all()


@pytest.mark.parametrize(("n", "dtype"), in_turn(SIZES, DTYPES, rounds=4))
def test_singular_values_and_vectors(dtype: str, n: int) -> None:
    a = stacked(n, dtype)[..., : max(n - 3, 2)]
    u, values, vh = on_gpu(lambda a: np.linalg.svd(a, full_matrices=False), a)
    k = values.shape[-1]
    assert (np.diff(values) <= 0).all()
    unit = 30 * max(n, 3) * float(np.finfo(dtype).eps)
    u, s, vh, a = wide(u), wide(values)[:, None], wide(vh), wide(a)
    size = np.abs(a).max((1, 2), keepdims=True)
    least = 4 * n * float(np.finfo(dtype).smallest_subnormal)
    assert (np.abs((u * (s / 64)) @ vh - a / 64) <= unit * n**0.5 * size / 64 + least).all()
    assert (np.abs(adjoint(u) @ u - np.eye(k)) <= unit).all()
    assert (np.abs(vh @ adjoint(vh) - np.eye(k)) <= unit).all()


@pytest.mark.parametrize(("n", "dtype"), in_turn(SIZES, DTYPES, rounds=4))
@pytest.mark.parametrize("columns", [1, 5, 64, 300])
def test_triangular_factors_and_systems(dtype: str, n: int, columns: int) -> None:
    rng = np.random.default_rng(n)
    a = rng.standard_normal((3, n, n + 2))
    a = (a + 1j * rng.standard_normal(a.shape) if "c" in dtype else a).astype(dtype)
    b = rng.standard_normal((3, n, columns)).astype(dtype)
    unit = 30 * n * float(np.finfo(dtype).eps)

    def program(a: Any, b: Any) -> Any:
        square = a @ adjoint(a) + n * np.eye(n, dtype=a.dtype)
        factor = np.linalg.cholesky(square)
        x = np.linalg.solve(a[..., 1:-1], b)
        y = tracegraph.linalg.solve_triangular(factor, b, lower=True)
        return (square, factor, x, y, *np.linalg.qr(adjoint(a)))

    square, factor, x, y, q, r = map(wide, on_gpu(program, a, b))
    expected = program(a, b)
    np.testing.assert_allclose(factor @ adjoint(factor), square, unit, unit * np.abs(square).max())
    left = wide(a)[..., 1:-1]
    norms = np.linalg.norm(left, axis=(1, 2)) * np.linalg.norm(x, axis=(1, 2))
    assert (np.linalg.norm(left @ x - b, axis=(1, 2)) <= unit * norms).all()
    assert (np.abs(factor @ y - b) <= unit * np.abs(factor).max() * np.abs(y).max()).all()
    np.testing.assert_allclose(q @ r, adjoint(wide(a)), unit, unit * np.abs(a).max())
    np.testing.assert_allclose(adjoint(q) @ q, np.broadcast_to(np.eye(n), (3, n, n)), 0, unit)
    assert (np.sign(np.diagonal(r, 0, 1, 2)) == np.sign(np.diagonal(expected[5], 0, 1, 2))).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [3, 6, 20])
def test_systems_are_parts_of_a_loop_in_one_kernel(dtype: str, n: int) -> None:
    rng = np.random.default_rng(n)
    a, x = rng.standard_normal((n, n)).astype(dtype), rng.standard_normal((n, 2)).astype(dtype)

    def program(a: Any, x: Any) -> Any:
        def step(_: Any, x: Any) -> Any:
            return np.linalg.solve(a + np.sum(np.abs(x)) * np.eye(n, dtype=dtype), x)

        return tracegraph.fori_loop(0, 20, step, x)

    unit = 1e3 * n * float(np.finfo(dtype).eps)
    found, expected = on_gpu(program, a, x), program(a, x)
    np.testing.assert_allclose(found, expected, unit, unit * np.abs(expected).max())


@pytest.mark.parametrize("shape", [(1025, 4), (20_000, 4), (1300, 33), (40, 1100)])
def test_tall_matrices_are_split(shape: tuple[int, int]) -> None:
    a = np.random.default_rng(0).standard_normal(shape)
    u, s, vh = on_gpu(lambda a: np.linalg.svd(a, full_matrices=False), a)
    np.testing.assert_allclose((u * s) @ vh, a, 0, 1e-12)
    np.testing.assert_allclose(u.T @ u, np.eye(min(shape)), 0, 1e-12)
    b = a[:, 0] ** 2
    if shape[0] > shape[1]:
        found = on_gpu(lambda a, b: np.linalg.lstsq(a, b)[0], a, b)
        np.testing.assert_allclose(found, np.linalg.lstsq(a, b)[0], 0, 1e-12)


def test_log_densities_of_many_points() -> None:
    rng = np.random.default_rng(0)
    x, mean = rng.standard_normal((3000, 16)), rng.standard_normal((8, 16))
    factor = np.tril(rng.standard_normal((8, 16, 16))) + 6 * np.eye(16)

    def program(x: Any, mean: Any, factor: Any) -> Any:
        right = np.swapaxes(x - mean[:, None], -1, -2)
        z = tracegraph.linalg.solve_triangular(factor, right, lower=True)
        return np.sum(z * z, axis=1)

    found, expected = on_gpu(program, x, mean, factor), program(x, mean, factor)
    np.testing.assert_allclose(found, expected, 1e-12)
