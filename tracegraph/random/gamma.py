"""The gamma distribution and those made of it, by Marsaglia and Tsang's rejection method.

"A simple method for generating gamma variables" (ACM Transactions on Mathematical Software 26,
2000). All elements are drawn at the same time, until the last one is accepted: of a million, in
about nine iterations of one loop.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

import tracegraph.numpy as tnp
from tracegraph.arrays.eager import apply
from tracegraph.control import while_loop
from tracegraph.ir.op import get
from tracegraph.random.keys import cast, fold_in, shape_of, split
from tracegraph.random.transformed_uniforms import normal, parameters, shape_for
from tracegraph.random.uniform import Shape, floating, uniform, within

__all__ = ["beta", "chisquare", "dirichlet", "f", "gamma", "loggamma", "t"]

_WHY = "samples of the gamma distribution have no derivative in its parameters"


def _computed_in(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.float32) if dtype.itemsize == 2 else dtype


class _Drawn(NamedTuple):
    """Gamma distributed numbers as products: one may be in range where another is not.

    A number is `scale * root**3 * exp(exponent / a)`. The exponent is 0 for a from 1 on.
    """

    a: Any
    scale: Any
    root: Any
    exponent: Any

    @property
    def factor(self) -> Any:
        """The numbers, but for the exponential."""
        return self.scale * (self.root * self.root * self.root)

    @property
    def log_factor(self) -> Any:
        """The logarithms of those."""
        return tnp.log(self.scale) + self.a.dtype.type(3) * tnp.log(self.root)

    @property
    def power(self) -> Any:
        """The logarithm of the other factor; that of a number of the parameter 0 is -inf."""
        return tnp.where(self.a == 0, self.a.dtype.type(-np.inf), self.exponent / self.a)

    @property
    def over_mean(self) -> Any:
        """`factor` over the mean a, from 1 on."""
        one = self.a.dtype.type(1)
        scale = tnp.where(self.a == np.inf, one, self.scale / tnp.maximum(self.a, one))
        return scale * (self.root * self.root * self.root)

    @property
    def log_small_mean(self) -> Any:
        """The logarithm of the mean a, from 0 to 1; of 0, 0, for then the power is -inf."""
        one = self.a.dtype.type(1)
        return tnp.log(tnp.where(self.a == 0, one, tnp.minimum(self.a, one)))


def _draw(key: Any, a: Any, shape: tuple[int, ...]) -> _Drawn:
    """Gamma distributed numbers.

    For a below 1, a number of a + 1 is multiplied by a uniform one to 1 / a. From `always` on, an
    attempt is rejected so rarely, and what decides it so imprecise, that each is accepted.
    """
    dtype = a.dtype
    zero, one, three = (dtype.type(n) for n in (0, 1, 3))
    within(np.empty(np.broadcast_shapes(a.shape, shape), bool), shape, "a")
    a = apply(get("forbid_derivative"), tnp.broadcast_to(a, shape), why=_WHY)
    a = tnp.where(a >= 0, a, dtype.type(np.nan))
    one_key, key_of_power = split(key)
    small = a < 1
    scale = tnp.where(small, a + one, a) - dtype.type(1 / 3)
    d = tnp.minimum(scale, np.finfo(dtype).max)
    c = one / tnp.sqrt(dtype.type(9) * d)
    always = d > dtype.type(np.finfo(dtype).eps ** -0.5)

    def unfinished(state: Any) -> Any:
        return tnp.logical_not(tnp.all(state[2]))

    def attempt(state: Any) -> Any:
        count, found, done = state
        x = normal(fold_in(one_key, 2 * count), shape, dtype)
        root = one + c * x
        possible = root > 0
        cube = tnp.where(possible, root, one)
        bound = dtype.type(0.5) * x * x + d * (one - cube * cube * cube + three * tnp.log(cube))
        u = uniform(fold_in(one_key, 2 * count + 1), shape, dtype)
        fits = always | (tnp.log(one - u) < bound)
        accepted = tnp.logical_not(done) & possible & fits
        return count + 1, tnp.where(accepted, cube, found), done | accepted

    start = (np.int64(0), tnp.ones(shape, dtype), tnp.isnan(a))
    _, root, _ = while_loop(unfinished, attempt, start)
    exponent = tnp.log(one - uniform(key_of_power, shape, dtype))
    return _Drawn(a, scale, root, tnp.where(small, exponent, zero))


def loggamma(key: Any, a: Any, shape: Shape | None = None, dtype: DTypeLike = np.float64) -> Any:
    """Logarithms of gamma distributed numbers, finite where those are too small.

    They are -inf for the parameter 0, and NaN for one below 0.

    Shape: `shape`; by default that of `a`.

    Raises:
        TypeError: `key` is not a key; `dtype` is not of real floating-point numbers.
        ValueError: `shape` is negative, or `a` does not broadcast to it.
        DerivativeError: a derivative in `a` is needed.

    >>> bool(np.all(np.isfinite(tracegraph.random.loggamma(tracegraph.random.key(0), 1e-3, (9,)))))
    True
    """
    target = floating(dtype)
    (a,) = parameters(_computed_in(target), a)
    with np.errstate(all="ignore"):
        drawn = _draw(key, a, shape_for(shape, a))
        return cast(drawn.log_factor + drawn.power, target)


def gamma(key: Any, a: Any, shape: Shape | None = None, dtype: DTypeLike = np.float64) -> Any:
    """Numbers with a density proportional to x**(a - 1) exp(-x).

    They are 0 for the parameter 0, infinite for an infinite one, and NaN for one below 0.

    Shape: `shape`; by default that of `a`.

    Raises:
        TypeError: `key` is not a key; `dtype` is not of real floating-point numbers.
        ValueError: `shape` is negative, or `a` does not broadcast to it.
        DerivativeError: a derivative in `a` is needed.

    >>> x = tracegraph.random.gamma(tracegraph.random.key(0), 3.0, (10_000,))
    >>> round(float(x.mean()), 1)
    3.0
    """
    target = floating(dtype)
    (a,) = parameters(_computed_in(target), a)
    with np.errstate(all="ignore"):
        drawn = _draw(key, a, shape_for(shape, a))
        return cast(drawn.factor * tnp.exp(drawn.power), target)


def chisquare(key: Any, df: Any, shape: Shape | None = None, dtype: DTypeLike = np.float64) -> Any:
    """Numbers distributed as the sum of the squares of `df` normal numbers.

    Shape: `shape`; by default that of `df`.

    Raises:
        TypeError: `key` is not a key; `dtype` is not of real floating-point numbers.
        ValueError: `shape` is negative, or `df` does not broadcast to it.
        DerivativeError: a derivative in `df` is needed.

    >>> x = tracegraph.random.chisquare(tracegraph.random.key(0), 3.0, (10_000,))
    >>> round(float(x.mean()), 1)
    3.0
    """
    target = floating(dtype)
    (half,) = _halves(target, df)
    with np.errstate(all="ignore"):
        return cast(half.dtype.type(2) * gamma(key, half, shape, half.dtype), target)


def _halves(dtype: np.dtype[Any], *degrees: Any) -> list[Any]:
    """Parameters of gamma distributions from degrees of freedom."""
    wide = _computed_in(dtype)
    return [df * wide.type(0.5) for df in parameters(wide, *degrees)]


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
        TypeError: `key` is not a key; `dtype` is not of real floating-point numbers.
        ValueError: `shape` is negative, or parameters do not broadcast to it.
        DerivativeError: a derivative in a parameter is needed.

    >>> x = tracegraph.random.f(tracegraph.random.key(0), 4.0, 100.0, (10_000,))
    >>> round(float(x.mean()), 1)
    1.0
    """
    target = floating(dtype)
    above, below = _halves(target, dfnum, dfden)
    extents = shape_for(shape, above, below)
    first, second = split(key)
    with np.errstate(all="ignore"):
        upper, lower = _draw(first, above, extents), _draw(second, below, extents)
        powers = _relative_powers(_together(upper, lower), 0)
        exponent = powers[0] - powers[1] + lower.log_small_mean - upper.log_small_mean
        return cast(upper.over_mean / lower.over_mean * tnp.exp(exponent), target)


def t(key: Any, df: Any, shape: Shape | None = None, dtype: DTypeLike = np.float64) -> Any:
    """Numbers of Student's t distribution with `df` degrees of freedom.

    Shape: `shape`; by default that of `df`.

    Raises:
        TypeError: `key` is not a key; `dtype` is not of real floating-point numbers.
        ValueError: `shape` is negative, or `df` does not broadcast to it.
        DerivativeError: a derivative in `df` is needed.

    >>> x = tracegraph.random.t(tracegraph.random.key(0), 10.0, (10_000,))
    >>> round(float(x.std()), 1)
    1.1
    """
    target = floating(dtype)
    (half,) = _halves(target, df)
    extents = shape_for(shape, half)
    first, second = split(key)
    with np.errstate(all="ignore"):
        drawn = _draw(second, half, extents)
        logarithm = half.dtype.type(0.5) * (drawn.log_small_mean - drawn.power)
        scale = tnp.exp(logarithm) / tnp.sqrt(drawn.over_mean)
        return cast(cast(normal(first, extents, target), half.dtype) * scale, target)


def beta(
    key: Any, a: Any, b: Any, shape: Shape | None = None, dtype: DTypeLike = np.float64
) -> Any:
    """Numbers from 0 to 1 with a density proportional to x**(a - 1) (1 - x)**(b - 1).

    If a parameter is 0 or infinite, they are 0 or 1; if both are, they have the limit for equal
    parameters.

    Shape: `shape`; by default that to which the parameters broadcast.

    Raises:
        TypeError: `key` is not a key; `dtype` is not of real floating-point numbers.
        ValueError: `shape` is negative, or parameters do not broadcast to it.
        DerivativeError: a derivative in a parameter is needed.

    >>> x = tracegraph.random.beta(tracegraph.random.key(0), 1.0, 4.0, (10_000,))
    >>> round(float(x.mean()), 1)
    0.2
    """
    target = floating(dtype)
    a, b = parameters(_computed_in(target), a, b)
    extents = shape_for(shape, a, b)
    first, second = split(key)
    with np.errstate(all="ignore"):
        drawn = _together(_draw(first, a, extents), _draw(second, b, extents))
        weights = _weights(drawn, 0)
        return cast(weights[0] / (weights[0] + weights[1]), target)


def _together(first: _Drawn, second: _Drawn) -> _Drawn:
    """Both along a new first axis."""
    return _Drawn(*(tnp.stack(pair) for pair in zip(first, second, strict=True)))


def _weights(drawn: _Drawn, axis: int) -> Any:
    """Gamma distributed numbers along an axis, up to a common factor.

    All parameters may be 0 or infinite: what is the limit of equal ones.
    """
    factor = drawn.factor
    most = tnp.max(factor, axis=axis, keepdims=True)
    factor = tnp.where(factor == most, drawn.a.dtype.type(1), factor / most)
    return factor * tnp.exp(_relative_powers(drawn, axis))


def _relative_powers(drawn: _Drawn, axis: int) -> Any:
    """Powers along an axis, less the largest one.

    They are made relative before they may leave the range: exponents over parameters are products
    with the least positive parameter over each, and the differences are divided by the least one.
    """
    zero, one, infinite = (drawn.a.dtype.type(x) for x in (0, 1, np.inf))
    a, exponent = drawn.a, drawn.exponent

    def largest(x: Any) -> Any:
        return tnp.max(x, axis=axis, keepdims=True)

    least = -largest(tnp.where(a > 0, -a, -infinite))
    least = tnp.where(largest(a) == 0, zero, least)
    scaled = tnp.where(a > 0, exponent * (least / a), -infinite)
    scaled = tnp.where(a == least, exponent, scaled)
    apart = scaled - largest(scaled)
    return tnp.where(apart == 0, zero, apart / tnp.where(least == infinite, one, least))


def log_of_root(key: Any, p: float, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Logarithms of gamma distributed numbers of the parameter 1 / p, to the power 1 / p."""
    (a,) = parameters(dtype, 1 / p)
    drawn = _draw(key, a, shape)
    return drawn.exponent + drawn.log_factor / dtype.type(p)


def dirichlet(
    key: Any, alpha: Any, shape: Shape | None = None, dtype: DTypeLike = np.float64
) -> Any:
    """Vectors of positive numbers whose sum is 1, with a density proportional to their powers.

    Elements whose parameter is 0 are 0, unless all parameters are 0.

    Shape: `(*shape, n)`, where `alpha` has the shape `(..., n)`; by default that of `alpha`.

    Raises:
        TypeError: `key` is not a key; `dtype` is not of real floating-point numbers.
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
    with np.errstate(all="ignore"):
        weights = _weights(_draw(key, alpha, (*front, alpha.shape[-1])), -1)
        return cast(weights / tnp.sum(weights, axis=-1, keepdims=True), target)
