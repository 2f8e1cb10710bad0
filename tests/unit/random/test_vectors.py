"""Normal vectors of a covariance, points of a ball, orthogonal matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph import random, special
from tracegraph.errors import UnsupportedByTracerError

KEY = random.key(2026)
N = 40_000
COV = np.array([[2.0, 0.5, -0.25], [0.5, 1.0, 0.25], [-0.25, 0.25, 0.5]])
MEAN = np.array([1.0, -2.0, 0.5])


@pytest.mark.parametrize("method", ["cholesky", "eigh", "svd"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_normal_vectors_have_their_mean_and_covariance(method: str, dtype: Any) -> None:
    x = random.multivariate_normal(KEY, MEAN, COV, (N,), dtype, method)
    assert (x.shape, x.dtype) == ((N, 3), dtype)
    np.testing.assert_allclose(x.mean(axis=0), MEAN, atol=0.03)
    np.testing.assert_allclose(np.cov(x.T), COV, atol=0.04)


def test_normal_vectors_are_jaxs() -> None:
    """`jax.random.multivariate_normal` multiplies these numbers with this factor."""
    z = random.normal(KEY, (5, 3))
    wanted = MEAN + np.einsum("ij,nj->ni", np.linalg.cholesky(COV), z)
    np.testing.assert_allclose(random.multivariate_normal(KEY, MEAN, COV, (5,)), wanted, 1e-14)


def test_a_singular_covariance_needs_another_method() -> None:
    singular = np.array([[1.0, 1.0], [1.0, 1.0]])
    x = random.multivariate_normal(KEY, np.zeros(2), singular, (100,), method="eigh")
    np.testing.assert_allclose(x[:, 0], x[:, 1], atol=1e-7)
    with pytest.raises(np.linalg.LinAlgError):
        random.multivariate_normal(KEY, np.zeros(2), singular - np.eye(2), (100,))


def test_batches_of_normal_vectors() -> None:
    covs = COV * np.array([1.0, 4.0])[:, None, None]
    x = random.multivariate_normal(KEY, MEAN, covs, (N, 2))
    np.testing.assert_allclose(np.cov(x[:, 1].T), 4 * COV, atol=0.15)
    assert random.multivariate_normal(KEY, MEAN, covs).shape == (2, 3)
    assert random.multivariate_normal(KEY, np.zeros((4, 1, 3)), covs).shape == (4, 2, 3)
    assert random.multivariate_normal(KEY, MEAN, COV, (2,), np.float16).dtype == np.float16


def test_normal_vectors_are_differentiable() -> None:
    slope = tracegraph.grad(lambda m: np.sum(random.multivariate_normal(KEY, m, COV, (7,))))(MEAN)
    np.testing.assert_allclose(slope, [7, 7, 7])


@pytest.mark.parametrize(
    ("mean", "cov", "shape", "message"),
    [
        (MEAN, COV[:2], None, r"covariance of shape \(..., n, n\), got \(3,\) and \(2, 3\)"),
        (1.0, COV, None, r"got \(\) and \(3, 3\)"),
        (np.zeros((4, 3)), COV, (1,), r"broadcast to \(4,\), beyond the shape \(1,\)"),
    ],
)
def test_shapes_that_do_not_fit(mean: Any, cov: Any, shape: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        random.multivariate_normal(KEY, mean, cov, shape)


def test_an_unknown_method() -> None:
    with pytest.raises(ValueError, match="method must be one of cholesky, eigh, svd, got 'lu'"):
        random.multivariate_normal(KEY, MEAN, COV, method="lu")


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_orthogonal_matrices(dtype: Any) -> None:
    q = random.orthogonal(KEY, 4, (500,), dtype)
    assert (q.shape, q.dtype) == ((500, 4, 4), dtype)
    square = q @ np.conj(np.swapaxes(q, 1, 2))
    np.testing.assert_allclose(square, np.broadcast_to(np.eye(4), square.shape), atol=3e-6)
    assert abs(q.mean()) < 0.02
    assert abs(np.mean(np.abs(q) ** 4) - (0.125 if dtype != np.complex128 else 0.1)) < 0.01


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_points_of_a_ball_fill_it_evenly(p: float) -> None:
    x = random.ball(KEY, 3, p, (N,))
    radius = np.sum(np.abs(x) ** p, axis=1) ** (1 / p)
    ordered = np.sort(radius) ** 3  # the volume within
    apart = np.max(np.abs(ordered - np.arange(1, N + 1) / N))
    assert apart * np.sqrt(N) < 1.95
    np.testing.assert_allclose(x.mean(axis=0), 0, atol=0.02)


def test_generalized_normal_numbers() -> None:
    x = np.sort(random.generalized_normal(KEY, 3.0, (N,)))
    wanted = 0.5 + 0.5 * np.sign(x) * special.gammainc(1 / 3, np.abs(x) ** 3)
    assert np.max(np.abs(wanted - np.arange(1, N + 1) / N)) * np.sqrt(N) < 1.95


@pytest.mark.parametrize(
    "draw",
    [
        lambda key: random.multivariate_normal(key, MEAN, COV, (2, 5)),
        lambda key: random.ball(key, 3, shape=(4,)),
        lambda key: random.orthogonal(key, 3, (2,)),
    ],
)
def test_traced_samples_are_those_of_the_eager_run(draw: Any) -> None:
    np.testing.assert_allclose(tracegraph.jit(draw, device="host")(KEY), draw(KEY), 1e-12)


def test_the_power_of_a_norm_is_static_and_positive() -> None:
    with pytest.raises(UnsupportedByTracerError, match=r"traced p .* make it a static argument"):
        tracegraph.jit(lambda p: random.ball(KEY, 3, p), device="host")(2.0)
    for p in (0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="p must be a positive number, got"):
            random.generalized_normal(KEY, p)
