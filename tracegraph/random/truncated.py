"""The normal distribution between two bounds, wherever they are.

Around zero by JAX's formula, the inverse of the error function. It has no digits in the tails,
where that function is nearly 1; there the logarithm of the probability above a number is inverted,
by Halley's iteration. With Q the probability above, and h = density / Q, the function of d

    log Q(r) - log Q(r + d) = d (r + d / 2) - log(erfcx((r + d) / sqrt(2)) / erfcx(r / sqrt(2)))

has the derivative h, and h' = h (h - r - d). Nothing in it overflows or cancels.
"""

from __future__ import annotations

from math import erfc, log, pi, sqrt
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike

import tracegraph.numpy as tnp
from tracegraph.random.keys import cast
from tracegraph.random.transforms import parameters, shape_for
from tracegraph.random.uniform import Shape, constant, floating, is_known, unit, within
from tracegraph.special import erf, erfcx, erfinv, ndtr
from tracegraph.transforms.custom import custom_jvp

_REFERENCE = 1.0
"""Probabilities in tails are quotients by that above this number, or above a greater bound."""

_ABOVE_REFERENCE = erfc(_REFERENCE / sqrt(2)) / 2

_STEPS = 3
"""Of Halley's iteration: the first estimate is 0.2 off at most, and each step cubes the error."""


def _centre(dtype: np.dtype[Any]) -> float:
    """Where the tails begin: JAX's formula is 20 ulp off there, or has some tens of results left"""
    return 3.1 if dtype.itemsize > 2 else 2.15


def truncated_normal(
    key: Any,
    lower: Any,
    upper: Any,
    shape: Shape | None = None,
    dtype: DTypeLike = np.float64,
) -> Any:
    """Standard normal numbers between two bounds, which are not among them.

    They are JAX's but for rounding, and precise in the tails, where JAX's are not. Without a number
    between the bounds, they are the lower one; NaN if the upper one is below it. They are
    differentiable in both.

    Shape: `shape`; by default that to which the bounds broadcast.

    Raises:
        TypeError: `key` is no key; `dtype` is not of real floating-point numbers.
        ValueError: `shape` is negative, or bounds do not broadcast to it.

    >>> x = tracegraph.random.truncated_normal(tracegraph.random.key(0), 2.0, 2.5, (100,))
    >>> bool(np.all((x > 2) & (x < 2.5)))
    True
    >>> tracegraph.random.truncated_normal(tracegraph.random.key(0), 40.0, np.inf, (3,)).round(3)
    array([40.014, 40.006, 40.084])
    """
    target = floating(dtype)
    low, high = parameters(target, lower, upper)
    extents = shape_for(shape, low, high)
    drawn = unit(key, extents, target)
    if is_known(lower) and is_known(upper):
        found = _sample(low, high, drawn, _has_tails(lower, upper, target))
    else:
        found = _between(low, high, drawn)
    return within(found, extents, "a bound")


def _has_tails(lower: Any, upper: Any, dtype: np.dtype[Any]) -> bool:
    """Whether samples between known bounds may be in a tail."""
    return not max(abs(lower), abs(upper)) < _centre(dtype) - 0.05


def _sample(low: Any, high: Any, drawn: Any, has_tails: bool) -> Any:
    """The numbers below which the share `drawn` of the distribution between the bounds is."""
    dtype = drawn.dtype
    root = dtype.type(sqrt(2))
    with np.errstate(all="ignore"):
        first, last = erf(low / root), erf(high / root)
        place = tnp.maximum(first, drawn * (last - first) + first)
        found = root * erfinv(place)
        if has_tails:
            in_tail = tnp.absolute(place) > dtype.type(1 - erfc(_centre(dtype) / sqrt(2)))
            found = tnp.where(in_tail, cast(_in_tail(low, high, drawn, place > 0), dtype), found)
        least = tnp.nextafter(low, dtype.type(np.inf))
        greatest = tnp.nextafter(high, dtype.type(-np.inf))
        alone = tnp.where(low <= high, low, dtype.type(np.nan))
        some = least <= greatest
        least, greatest = (tnp.where(some, bound, alone) for bound in (least, greatest))
        return tnp.minimum(tnp.maximum(found, least), greatest)


class _Side:
    """The distribution seen from the side of a sample, on which numbers are made positive.

    `near` and `far` are the bounds, `share` is the part of the distribution between `near` and the
    sample. Probabilities above the bounds and the sample are quotients by that above `start`.
    """

    def __init__(self, low: Any, high: Any, drawn: Any, positive: Any) -> None:
        half = drawn.dtype.type(ml_dtypes.finfo(drawn.dtype).eps / 2)
        drawn = tnp.maximum(drawn, half)  # the numbers drawn as 0 are those below eps
        if drawn.dtype.itemsize == 2:
            low, high, drawn = (cast(x, np.float32) for x in (low, high, drawn))
        self.type = drawn.dtype.type
        one = self.type(1)
        self.near = tnp.where(positive, low, -high)
        self.far = tnp.where(positive, high, -low)
        self.share = tnp.where(positive, drawn, one - drawn)
        self.start = tnp.maximum(self.near, self.type(_REFERENCE))
        self.above_near, self.above_far = self._above(self.near), self._above(self.far)
        self.above = (one - self.share) * self.above_near + self.share * self.above_far

    def _above(self, x: Any) -> Any:
        """The probability above a bound; constants where it is infinite, for derivatives."""
        zero, finite = self.type(0), self.counts(x)
        x = tnp.where(finite, x, tnp.where(x < zero, -self.type(np.inf), self.start))
        beyond = x >= self.start
        far = tnp.exp(-self.fall(tnp.where(beyond, x - self.start, zero)))
        near = ndtr(tnp.where(beyond, zero, -x)) / self.type(_ABOVE_REFERENCE)
        return tnp.where(beyond, tnp.where(finite, far, zero), near)

    def counts(self, bound: Any) -> Any:
        """Whether the density at a bound is not 0."""
        return (bound > -self.type(sqrt(2 * log(np.finfo(self.type).max)))) & (bound < np.inf)

    def fall(self, distance: Any) -> Any:
        """How much the logarithm of the probability above falls from `start` on."""
        quotient = self.scaled(self.start + distance) / self.scaled(self.start)
        return distance * (self.start + distance / self.type(2)) - tnp.log(quotient)

    def scaled(self, x: Any) -> Any:
        """The probability above x over the density at x, but for a constant."""
        return erfcx(x / self.type(sqrt(2)))


def _in_tail(low: Any, high: Any, drawn: Any, positive: Any) -> Any:
    """Samples beyond the reference on either side."""
    side = _Side(low, high, drawn, positive)
    two, start = side.type(2), side.start
    fallen = tnp.maximum(-tnp.log(side.above), side.type(0))
    distance = two * fallen / (start + tnp.hypot(start, tnp.sqrt(two * fallen)))
    for _ in range(_STEPS):
        rate = side.type(sqrt(2 / pi)) / side.scaled(start + distance)
        rate = tnp.minimum(rate, np.finfo(rate.dtype).max)
        step = (side.fall(distance) - fallen) / rate
        curvature = (rate - (start + distance)) / two
        distance = distance - step / (side.type(1) - step * curvature)
    return tnp.where(positive, start + distance, -(start + distance))


@custom_jvp
def _between(low: Any, high: Any, drawn: Any) -> Any:
    """`_sample` with its derivatives, in which no step of an iteration takes part."""
    return _sample(low, high, drawn, True)


@_between.defjvp
def _slope(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """The density at a bound over that at the sample, times the share on the other side."""
    low, high, drawn = primals
    found = _between(low, high, drawn)
    with np.errstate(all="ignore"):
        positive = found > 0
        side = _Side(low, high, constant(drawn), positive)
        scaled = side.scaled(tnp.absolute(cast(found, side.share.dtype))) / side.above
        one, zero = side.type(1), side.type(0)

        def weight(share: Any, above: Any, bound: Any) -> Any:
            counts = side.counts(bound)
            found = share * above * scaled / side.scaled(tnp.where(counts, bound, zero))
            return tnp.where(counts, found, zero)

        of_near = weight(one - side.share, side.above_near, side.near)
        of_far = weight(side.share, side.above_far, side.far)
        of_low = cast(tnp.where(positive, of_near, of_far), found.dtype)
        of_high = cast(tnp.where(positive, of_far, of_near), found.dtype)
        return found, of_low * tangents[0] + of_high * tangents[1]
