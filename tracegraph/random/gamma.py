"""The gamma distribution and those made of it, by Marsaglia and Tsang's rejection method.

"A simple method for generating gamma variables" (ACM Transactions on Mathematical Software 26,
2000). All elements are drawn at the same time, until the last one is accepted: of a million, in
about nine iterations of one loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

import tracegraph.numpy as tnp
from tracegraph.arrays.eager import apply
from tracegraph.control import while_loop
from tracegraph.ir.op import get
from tracegraph.random.keys import cast, fold_in, shape_of, split
from tracegraph.random.transforms import normal, parameters, shape_for
from tracegraph.random.uniform import Shape, floating, uniform, within
from tracegraph.special import softmax

_WHY = "samples of the gamma distribution have no derivative in its parameters"


def _computed_in(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.float32) if dtype.itemsize == 2 else dtype


def _log_gamma(key: Any, a: Any, shape: tuple[int, ...]) -> Any:
    """Logarithms of gamma distributed numbers.

    For a below 1, a number of a + 1 is multiplied by a uniform one to 1 / a: their logarithms are
    added, since the power may be too small.
    """
    dtype = a.dtype
    within(np.empty(np.broadcast_shapes(a.shape, shape), bool), shape, "a")
    a = apply(get("forbid_derivative"), tnp.broadcast_to(a, shape), why=_WHY)
    one, key_of_power = split(key)
    small = a < 1
    d = tnp.where(small, a + dtype.type(1), a) - dtype.type(1 / 3)
    c = dtype.type(1) / tnp.sqrt(dtype.type(9) * d)
    impossible = tnp.logical_not((a > 0) & (a < np.inf))

    def unfinished(state: Any) -> Any:
        return tnp.logical_not(tnp.all(state[2]))

    def attempt(state: Any) -> Any:
        count, found, done = state
        x = normal(fold_in(one, 2 * count), shape, dtype)
        root = dtype.type(1) + c * x
        possible = root > 0
        cube = tnp.where(possible, root, dtype.type(1))
        logarithm = dtype.type(3) * tnp.log(cube)
        bound = dtype.type(0.5) * x * x + d * (dtype.type(1) - cube * cube * cube + logarithm)
        u = uniform(fold_in(one, 2 * count + 1), shape, dtype)
        accepted = tnp.logical_not(done) & possible & (tnp.log(dtype.type(1) - u) < bound)
        return count + 1, tnp.where(accepted, logarithm, found), done | accepted

    start = (np.int64(0), tnp.zeros(shape, dtype), impossible)
    _, logarithm, _ = while_loop(unfinished, attempt, start)
    power = tnp.log(dtype.type(1) - uniform(key_of_power, shape, dtype)) / a
    found = tnp.log(d) + logarithm + tnp.where(small, power, dtype.type(0))
    at_ends = tnp.where(a == np.inf, a, dtype.type(np.nan))
    return tnp.where(impossible, at_ends, found)


def loggamma(key: Any, a: Any, shape: Shape | None = None, dtype: DTypeLike = np.float64) -> Any:
    """Logarithms of gamma distributed numbers, finite where those are too small.

    Shape: `shape`; by default that of `a`.

    Raises:
        TypeError: `key` is no key; `dtype` is not of real floating-point numbers.
        ValueError: `shape` is negative, or `a` does not broadcast to it.
        DerivativeError: a derivative in `a` is needed.

    >>> bool(np.all(np.isfinite(tracegraph.random.loggamma(tracegraph.random.key(0), 1e-3, (9,)))))
    True
    """
    target = floating(dtype)
    (a,) = parameters(_computed_in(target), a)
    with np.errstate(all="ignore"):
        return cast(_log_gamma(key, a, shape_for(shape, a)), target)


def gamma(key: Any, a: Any, shape: Shape | None = None, dtype: DTypeLike = np.float64) -> Any:
    """Numbers with a density proportional to x**(a - 1) exp(-x).

    Shape: `shape`; by default that of `a`.

    Raises:
        TypeError: `key` is no key; `dtype` is not of real floating-point numbers.
        ValueError: `shape` is negative, or `a` does not broadcast to it.
        DerivativeError: a derivative in `a` is needed.

    >>> x = tracegraph.random.gamma(tracegraph.random.key(0), 3.0, (10_000,))
    >>> round(float(x.mean()), 1)
    3.0
    """
    target = floating(dtype)
    return cast(tnp.exp(loggamma(key, a, shape, _computed_in(target))), target)


def chisquare(key: Any, df: Any, shape: Shape | None = None, dtype: DTypeLike = np.float64) -> Any:
    """Numbers distributed as the sum of the squares of `df` normal numbers.

    Shape: `shape`; by default that of `df`.

    Raises:
        TypeError: `key` is no key; `dtype` is not of real floating-point numbers.
        ValueError: `shape` is negative, or `df` does not broadcast to it.
        DerivativeError: a derivative in `df` is needed.

    >>> x = tracegraph.random.chisquare(tracegraph.random.key(0), 3.0, (10_000,))
    >>> round(float(x.mean()), 1)
    3.0
    """
    target = floating(dtype)
    (df,) = parameters(target, df)
    two = target.type(2)
    return two * gamma(key, df / two, shape, target)


def f(
    key: Any,
    dfnum: Any,
    dfden: Any,
    shape: Shape | None = None,
    dtype: DTypeLike = np.float64,
) -> Any:
    """Numbers of the F distribution: quotients of two mean squares of normal numbers.

    Shape: `shape`; by default that to which the parameters broadcast.

    Raises:
        TypeError: `key` is no key; `dtype` is not of real floating-point numbers.
        ValueError: `shape` is negative, or parameters do not broadcast to it.
        DerivativeError: a derivative in a parameter is needed.

    >>> x = tracegraph.random.f(tracegraph.random.key(0), 4.0, 100.0, (10_000,))
    >>> round(float(x.mean()), 1)
    1.0
    """
    target = floating(dtype)
    above, below = parameters(target, dfnum, dfden)
    extents = shape_for(shape, above, below)
    first, second = split(key)
    upper = chisquare(first, above, extents, target) / above
    return upper / (chisquare(second, below, extents, target) / below)


def t(key: Any, df: Any, shape: Shape | None = None, dtype: DTypeLike = np.float64) -> Any:
    """Numbers of Student's t distribution with `df` degrees of freedom.

    Shape: `shape`; by default that of `df`.

    Raises:
        TypeError: `key` is no key; `dtype` is not of real floating-point numbers.
        ValueError: `shape` is negative, or `df` does not broadcast to it.
        DerivativeError: a derivative in `df` is needed.

    >>> x = tracegraph.random.t(tracegraph.random.key(0), 10.0, (10_000,))
    >>> round(float(x.std()), 1)
    1.1
    """
    target = floating(dtype)
    (df,) = parameters(target, df)
    extents = shape_for(shape, df)
    first, second = split(key)
    scale = tnp.sqrt(df / chisquare(second, df, extents, target))
    return normal(first, extents, target) * scale


def beta(
    key: Any, a: Any, b: Any, shape: Shape | None = None, dtype: DTypeLike = np.float64
) -> Any:
    """Numbers from 0 to 1 with a density proportional to x**(a - 1) (1 - x)**(b - 1).

    Shape: `shape`; by default that to which the parameters broadcast.

    Raises:
        TypeError: `key` is no key; `dtype` is not of real floating-point numbers.
        ValueError: `shape` is negative, or parameters do not broadcast to it.
        DerivativeError: a derivative in a parameter is needed.

    >>> x = tracegraph.random.beta(tracegraph.random.key(0), 1.0, 4.0, (10_000,))
    >>> round(float(x.mean()), 1)
    0.2
    """
    target = floating(dtype)
    wide = _computed_in(target)
    a, b = parameters(wide, a, b)
    extents = shape_for(shape, a, b)
    first, second = split(key)
    above, below = loggamma(first, a, extents, wide), loggamma(second, b, extents, wide)
    largest = tnp.maximum(above, below)
    x, y = tnp.exp(above - largest), tnp.exp(below - largest)
    return cast(x / (x + y), target)


def dirichlet(
    key: Any, alpha: Any, shape: Shape | None = None, dtype: DTypeLike = np.float64
) -> Any:
    """Vectors of positive numbers whose sum is 1, with a density proportional to their powers.

    Shape: `(*shape, n)`, where `alpha` has the shape `(..., n)`; by default that of `alpha`.

    Raises:
        TypeError: `key` is no key; `dtype` is not of real floating-point numbers.
        ValueError: `alpha` has no axis, `shape` is negative, or `alpha` does not broadcast.
        DerivativeError: a derivative in `alpha` is needed.

    >>> x = tracegraph.random.dirichlet(tracegraph.random.key(0), [1.0, 4.0], (10_000,))
    >>> x.mean(axis=0).round(1)
    array([0.2, 0.8])
    """
    target = floating(dtype)
    (alpha,) = parameters(_computed_in(target), alpha)
    if not alpha.ndim:
        raise ValueError("alpha of dirichlet must have at least one axis")
    front = alpha.shape[:-1] if shape is None else shape_of(shape)
    logarithms = loggamma(key, alpha, (*front, alpha.shape[-1]), alpha.dtype)
    return cast(softmax(logarithms, axis=-1), target)
