"""Distributions of counts: Poisson, binomial and geometric numbers.

Small means by inversion: one uniform number, and a sum of probabilities. Others by Hörmann's
transformed rejection, in one loop for all elements: "The transformed rejection method for
generating Poisson random variables" (Insurance: Mathematics and Economics 12, 1993) and "The
generation of binomial random variates" (Journal of Statistical Computation and Simulation 46,
1993). Logarithms of probabilities are sums of small terms, after Loader, "Fast and accurate
computation of binomial probabilities", 2000: if means are large, differences of the logarithms of
factorials have no correct digits.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial, log, pi
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

import tracegraph.numpy as tnp
from tracegraph.arrays.eager import apply
from tracegraph.control import while_loop
from tracegraph.ir.op import get
from tracegraph.numpy.dispatching.dispatch import lifted
from tracegraph.random.keys import cast, fold_in, split
from tracegraph.random.transformed_uniforms import parameters, shape_for
from tracegraph.random.uniform import Shape, floating, uniform, within

__all__ = ["binomial", "geometric", "poisson"]

_WIDE = np.dtype(np.float64)
_FEW = 10
"""Means below are drawn by inversion; the rejection needs means from here on."""

_GREATEST = 2.0**62


def _broadcast(shape: tuple[int, ...], *values: Any) -> list[Any]:
    """Parameters in the shape of the result, without derivatives."""
    within(np.empty(np.broadcast_shapes(*(v.shape for v in values), shape), bool), shape,
           "a parameter")  # fmt: skip
    return [apply(get("stop_gradient"), tnp.broadcast_to(v, shape)) for v in values]


_OF_FEW = np.array([log(factorial(k)) - (k * log(k or 1) - k) for k in range(10)])


def _rest(k: Any) -> Any:
    """log(k!) - (k log(k) - k): a table for k below 10, then Stirling's series."""
    large = tnp.maximum(k, 10.0)
    inverse = 1 / large
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))
    few = tnp.take(lifted(_OF_FEW), tnp.minimum(k, 9.0).astype(np.int64))
    return tnp.where(k < 10, few, 0.5 * (log(2 * pi) + tnp.log(large)) + series)


def _deviance(k: Any, mean: Any) -> Any:
    """K log(k / mean) + mean - k."""
    above = tnp.maximum(k, 1.0)
    x = (mean - above) / above
    return tnp.where(k > 0, above * (x - tnp.log1p(x)), mean)


def _inverted(key: Any, small: Any, first: Any, ratio: Callable[[Any], Any]) -> Any:
    """Counts by their probabilities: `first` of 0, and `ratio(k)` of k + 1 over k."""
    u = uniform(key, first.shape)

    def below(state: Any) -> Any:
        _, mass, total = state
        return small & (u >= total) & (mass > 1e-20)

    def step(state: Any) -> Any:
        k, mass, total = state
        moved = below(state)
        following = mass * ratio(k)
        return (
            tnp.where(moved, k + 1, k),
            tnp.where(moved, following, mass),
            tnp.where(moved, total + following, total),
        )

    start = tnp.zeros(first.shape), first, first
    return while_loop(lambda state: tnp.any(below(state)), step, start)[0]


def _rejected(
    key: Any,
    large: Any,
    propose: Callable[[Any, Any], Any],
    accepted: Callable[[Any, Any, Any], Any],
) -> Any:
    """Counts where `large` is true: proposals of u in -1/2 … 1/2, accepted by v in 0 … 1."""
    shape = large.shape

    def attempt(state: Any) -> Any:
        count, found, waiting = state
        u = uniform(fold_in(key, 2 * count), shape) - 0.5
        v = 1 - uniform(fold_in(key, 2 * count + 1), shape)
        distance = 0.5 - tnp.absolute(u)
        k = propose(u, tnp.maximum(distance, 2.0**-53))
        taken = waiting & accepted(tnp.maximum(distance, 2.0**-53), v, k)
        return count + 1, tnp.where(taken, k, found), waiting & tnp.logical_not(taken)

    start = np.int64(0), tnp.zeros(shape), large
    return while_loop(lambda state: tnp.any(state[2]), attempt, start)[1]


def _poisson(key: Any, mean: Any) -> Any:
    """Poisson numbers of positive means."""
    one, other = split(key)
    small = mean < _FEW
    few = tnp.where(small, mean, 1.0)
    inverted = _inverted(one, small, tnp.exp(-few), lambda k: few / (k + 1))

    mean = tnp.where(small, 16.0, mean)
    b = 0.931 + 2.53 * tnp.sqrt(mean)
    a = -0.059 + 0.02483 * b
    scale = 1.1239 + 1.1328 / (b - 3.4)
    at_once = 0.9277 - 3.6224 / (b - 2)

    def propose(u: Any, distance: Any) -> Any:
        return tnp.floor((2 * a / distance + b) * u + mean + 0.43)

    def accepted(distance: Any, v: Any, k: Any) -> Any:
        possible = (k >= 0) & ((distance >= 0.013) | (v <= distance))
        count = tnp.maximum(k, 0.0)
        logarithm = tnp.log(v * scale / (a / (distance * distance) + b))
        fits = logarithm <= -_deviance(count, mean) - _rest(count)
        return ((distance >= 0.07) & (v <= at_once)) | (possible & fits)

    return tnp.where(small, inverted, _rejected(other, tnp.logical_not(small), propose, accepted))


def poisson(key: Any, lam: Any, shape: Shape | None = None, dtype: DTypeLike = np.int64) -> Any:
    """Poisson distributed integers with the mean `lam`; -1 where that is not a number from 0 to
    2**62.

    Numbers above the range of the dtype are its greatest number.

    Shape: `shape`; by default that of `lam`.

    Raises:
        TypeError: `key` is not a key; `dtype` is not of signed integers.
        ValueError: `shape` is negative, or `lam` does not broadcast to it.

    >>> x = tracegraph.random.poisson(tracegraph.random.key(0), 3.0, (10_000,))
    >>> round(float(x.mean()), 1), round(float(x.var()), 1)
    (3.0, 3.0)
    """
    target = _signed(dtype, "poisson")
    (lam,) = parameters(_WIDE, lam)
    (lam,) = _broadcast(shape_for(shape, lam), lam)
    positive = (lam > 0) & (lam <= _GREATEST)
    with np.errstate(all="ignore"):
        found = _poisson(key, tnp.where(positive, lam, 1.0))
        found = tnp.where(lam == 0, 0.0, tnp.where(positive, found, -1.0))
        return _integers(found, target)


def _integers(counts: Any, dtype: np.dtype[Any]) -> Any:
    """Counts as integers; those above the range of the dtype are its greatest number."""
    greatest = np.iinfo(dtype).max
    fits = counts < float(greatest)
    return tnp.where(fits, cast(tnp.where(fits, counts, 0.0), dtype), dtype.type(greatest))


def _signed(dtype: DTypeLike, name: str) -> np.dtype[Any]:
    """A dtype of signed integers.

    Raises:
        TypeError: it is another one.
    """
    target = np.dtype(dtype)
    if target.kind != "i":
        raise TypeError(f"{name} makes signed integers, got dtype {target}")
    return target


def _binomial(key: Any, n: Any, p: Any) -> Any:
    """Binomial numbers for p from 0 to 1/2, and n from 0."""
    one, other = split(key)
    q = 1 - p
    small = n * p < _FEW
    odds = tnp.where(small, p / q, 0.0)
    first = tnp.exp(tnp.where(small, n, 0.0) * tnp.log1p(-p))
    inverted = _inverted(one, small, first, lambda k: (n - k) / (k + 1) * odds)

    n, p = tnp.where(small, 64.0, n), tnp.where(small, 0.5, p)
    q = 1 - p
    deviation = tnp.sqrt(n * p * q)
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    scale = (2.83 + 5.1 / b) * deviation
    at_once = 0.92 - 4.2 / b

    def logarithm(k: Any) -> Any:
        """The logarithm of the probability, up to a constant."""
        return -_deviance(k, n * p) - _deviance(n - k, n * q) - _rest(k) - _rest(n - k)

    mode = tnp.floor((n + 1) * p)
    greatest = logarithm(mode)

    def propose(u: Any, distance: Any) -> Any:
        return tnp.floor((2 * a / distance + b) * u + n * p + 0.5)

    def accepted(distance: Any, v: Any, k: Any) -> Any:
        possible = (k >= 0) & (k <= n)
        count = tnp.minimum(tnp.maximum(k, 0.0), n)
        wanted = tnp.log(v * scale / (a / (distance * distance) + b))
        fits = wanted <= logarithm(count) - greatest
        return ((distance >= 0.07) & (v <= at_once)) | (possible & fits)

    large = _rejected(other, tnp.logical_not(small), propose, accepted)
    return tnp.where(small, inverted, large)


def binomial(
    key: Any, n: Any, p: Any, shape: Shape | None = None, dtype: DTypeLike = np.float64
) -> Any:
    """How many of `n` trials succeed, each with probability `p`, as floating-point numbers.

    NaN where `n` is not a number from 0 to 2**53, or `p` is not one from 0 to 1; `n` is rounded
    down.

    Shape: `shape`; by default that to which the parameters broadcast.

    Raises:
        TypeError: `key` is not a key; `dtype` is not of real floating-point numbers.
        ValueError: `shape` is negative, or parameters do not broadcast to it.

    >>> x = tracegraph.random.binomial(tracegraph.random.key(0), 100, 0.3, (10_000,))
    >>> int(x.mean().round()), int(x.var().round())
    (30, 21)
    """
    target = floating(dtype)
    n, p = parameters(_WIDE, n, p)
    n, p = _broadcast(shape_for(shape, n, p), n, p)
    possible = (n >= 0) & (n <= 2.0**53) & (p >= 0) & (p <= 1)
    n, p = tnp.where(possible, tnp.floor(n), 0.0), tnp.where(possible, p, 0.0)
    mirrored = p > 0.5
    with np.errstate(all="ignore"):
        found = tnp.minimum(_binomial(key, n, tnp.where(mirrored, 1 - p, p)), n)
    found = tnp.where(mirrored, n - found, found)
    return cast(tnp.where(possible, found, np.nan), target)


def geometric(key: Any, p: Any, shape: Shape | None = None, dtype: DTypeLike = np.int64) -> Any:
    """How many trials there are up to the first success, each with probability `p`.

    -1 where `p` is 0 or is not a probability. Numbers above the range of the dtype are its greatest
    number.

    Shape: `shape`; by default that of `p`.

    Raises:
        TypeError: `key` is not a key; `dtype` is not of signed integers.
        ValueError: `shape` is negative, or `p` does not broadcast to it.

    >>> x = tracegraph.random.geometric(tracegraph.random.key(0), 0.25, (10_000,))
    >>> int(x.min()), round(float(x.mean()))
    (1, 4)
    """
    target = _signed(dtype, "geometric")
    (p,) = parameters(_WIDE, p)
    (p,) = _broadcast(shape_for(shape, p), p)
    with np.errstate(all="ignore"):
        trials = tnp.floor(tnp.log1p(-uniform(key, p.shape)) / tnp.log1p(-p)) + 1
        return _integers(tnp.where((p > 0) & (p <= 1), trials, -1.0), target)
