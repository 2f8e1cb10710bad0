"""Normal vectors of a covariance, points of a ball, and orthogonal matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

import tracegraph.numpy as tnp
from tracegraph.errors import UnsupportedByTracerError
from tracegraph.random.gamma import log_of_root
from tracegraph.random.keys import shape_of, split
from tracegraph.random.transformed_uniforms import exponential, normal, parameters
from tracegraph.random.uniform import Shape, floating, rademacher
from tracegraph.special import logsumexp
from tracegraph.tracing.tracer import Tracer

__all__ = ["ball", "generalized_normal", "multivariate_normal", "orthogonal"]

METHODS = ("cholesky", "eigh", "svd")


def multivariate_normal(
    key: Any,
    mean: Any,
    cov: Any,
    shape: Shape | None = None,
    dtype: DTypeLike = np.float64,
    method: str = "cholesky",
) -> Any:
    """Normal vectors with a mean and a covariance matrix: JAX's up to rounding.

    They are differentiable in both.

    Args:
        key: a key.
        mean: the mean, of shape `(..., n)`.
        cov: the covariance, of shape `(..., n, n)`.
        shape: of the result, without its last axis; by default that to which the other axes of
            both broadcast.
        dtype: of the result.
        method: how the covariance is factored: "cholesky", or "eigh" or "svd" if it is singular.

    Shape: `(*shape, n)`.

    Raises:
        TypeError: `key` is not a key; `dtype` is not of real floating-point numbers.
        ValueError: the shapes do not fit, or the method is unknown.

    >>> cov = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> x = tracegraph.random.multivariate_normal(
    ...     tracegraph.random.key(0), np.zeros(2), cov, (50_000,)
    ... )
    >>> np.cov(x.T).round(1)
    array([[2., 1.],
           [1., 3.]])
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    target = floating(dtype)
    wide = np.dtype(np.float32) if target.itemsize == 2 else target
    mean, cov = parameters(wide, mean, cov)
    if mean.ndim < 1 or cov.ndim < 2 or cov.shape[-2:] != (mean.shape[-1],) * 2:
        raise ValueError(
            "multivariate_normal takes a mean of shape (..., n) and a covariance of shape "
            f"(..., n, n), got {mean.shape} and {cov.shape}"
        )
    batch = np.broadcast_shapes(mean.shape[:-1], cov.shape[:-2])
    extents = batch if shape is None else shape_of(shape)
    if np.broadcast_shapes(batch, extents) != extents:
        raise ValueError(f"the parameters broadcast to {batch}, beyond the shape {extents}")
    drawn = normal(key, (*extents, mean.shape[-1]), target).astype(wide)
    factor = _factor(cov, method)
    if cov.ndim == 2:
        moved = tnp.matmul(drawn, factor.T)
    else:
        moved = tnp.matmul(factor, drawn[..., None])[..., 0]
    return (mean + moved).astype(target)


def _factor(cov: Any, method: str) -> Any:
    """A matrix whose product with its transpose is the covariance."""
    if method == "cholesky":
        return tnp.linalg.cholesky(cov)
    if method == "eigh":
        values, vectors = tnp.linalg.eigh(cov)
        values = tnp.maximum(values, values.dtype.type(0))
    else:
        vectors, values, _ = tnp.linalg.svd(cov)
    return vectors * tnp.sqrt(values)[..., None, :]


def orthogonal(key: Any, n: int, shape: Shape = (), dtype: DTypeLike = np.float64) -> Any:
    """Orthogonal matrices, uniformly distributed; unitary ones, of a complex dtype.

    The factor Q of a normal matrix, with the signs of the diagonal of R: Mezzadri, "How to generate
    random matrices from the classical compact groups", 2007. They are JAX's up to rounding.

    Shape: `(*shape, n, n)`.

    Raises:
        TypeError: `key` is not a key; `dtype` is not of floating-point numbers.
        ValueError: `n` or `shape` is negative.

    >>> q = tracegraph.random.orthogonal(tracegraph.random.key(0), 3)
    >>> bool(np.allclose(q @ q.T, np.eye(3)))
    True
    """
    target = np.dtype(dtype)
    wide = np.dtype(np.float32) if target.itemsize == 2 else target
    (count,) = shape_of(n)
    drawn = normal(key, (*shape_of(shape), count, count), target).astype(wide)
    q, r = tnp.linalg.qr(drawn)
    diagonal = tnp.diagonal(r, axis1=-2, axis2=-1)
    diagonal = tnp.where(diagonal == 0, diagonal.dtype.type(1), diagonal)
    return (q * (diagonal / tnp.absolute(diagonal))[..., None, :]).astype(target)


def _power(p: Any) -> float:
    """A static positive number.

    Raises:
        UnsupportedByTracerError: it is traced.
        ValueError: it is not positive.
    """
    if isinstance(p, Tracer):
        raise UnsupportedByTracerError("a distribution of a traced p", "make it a static argument")
    if not 0 < float(p) < np.inf:
        raise ValueError(f"p must be a positive number, got {p!r}")
    return float(p)


def generalized_normal(key: Any, p: float, shape: Shape = (), dtype: DTypeLike = np.float64) -> Any:
    """Numbers with a density proportional to exp(-abs(x)**p), p being static.

    Raises:
        TypeError: `key` is not a key; `dtype` is not of real floating-point numbers.
        UnsupportedByTracerError: `p` is traced.
        ValueError: `p` is not positive, or `shape` is negative.

    >>> x = tracegraph.random.generalized_normal(tracegraph.random.key(0), 2.0, (50_000,))
    >>> round(float(x.var()), 1)
    0.5
    """
    target, p = floating(dtype), _power(p)
    signs, logarithms = _signs_and_sizes(key, p, shape_of(shape), target)
    with np.errstate(all="ignore"):
        return (signs * tnp.exp(logarithms)).astype(target)


def _signs_and_sizes(
    key: Any, p: float, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> tuple[Any, Any]:
    """Signs of such numbers, and logarithms of their magnitudes."""
    wide = np.dtype(np.float32) if dtype.itemsize == 2 else dtype
    first, second = split(key)
    p = min(p, float(np.finfo(wide).max) / 128)
    with np.errstate(all="ignore"):
        return rademacher(second, shape, wide), log_of_root(first, p, shape, wide)


def ball(key: Any, d: int, p: float = 2, shape: Shape = (), dtype: DTypeLike = np.float64) -> Any:
    """Points with equal probability in the unit ball of the norm of order `p` in `d` dimensions.

    Barthe, Guédon, Mendelson and Naor, "A probabilistic approach to the geometry of the l_p^n
    ball", 2005.

    Shape: `(*shape, d)`.

    Raises:
        TypeError: `key` is not a key; `dtype` is not of real floating-point numbers.
        UnsupportedByTracerError: `p` is traced.
        ValueError: `p` is not positive, or `d` or `shape` is negative.

    >>> x = tracegraph.random.ball(tracegraph.random.key(0), 3, shape=(50_000,))
    >>> bool(np.all((x**2).sum(axis=1) <= 1)), round(float((x**2).sum(axis=1).mean()), 1)
    (True, 0.6)
    """
    target, p = floating(dtype), _power(p)
    extents, (count,) = shape_of(shape), shape_of(d)
    first, second = split(key)
    signs, logarithms = _signs_and_sizes(first, p, (*extents, count), target)
    wide = signs.dtype.type
    p = min(p, float(np.finfo(wide).max) / 128)
    with np.errstate(all="ignore"):
        more = tnp.log(exponential(second, (*extents, 1), target).astype(wide))
        powers = tnp.concatenate([wide(p) * logarithms, more], axis=-1)
        total = logsumexp(powers, axis=-1, keepdims=True)
        return (signs * tnp.exp(logarithms - total / wide(p))).astype(target)
