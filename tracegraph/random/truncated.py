"""The normal distribution between two bounds, wherever they are.

Around zero by JAX's formula, the inverse of the error function. It has no digits in the tails,
where that function is nearly 1; there the logarithm of the probability above a number is inverted,
by Halley's iteration. With Q the probability above, and h = density / Q, the function of d

    log Q(r) - log Q(r + d) = d (r + d / 2) - log(erfcx((r + d) / sqrt(2)) / erfcx(r / sqrt(2)))

has the derivative h, and h' = h (h - r - d). Nothing in it overflows or cancels.
"""

from __future__ import annotations

from math import erfc, log, pi, sqrt
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike

import tracegraph.numpy as tnp
from tracegraph.random.keys import cast
from tracegraph.random.transformed_uniforms import parameters, shape_for
from tracegraph.random.uniform import Shape, constant, floating, is_known, unit, within
from tracegraph.special import erf, erfcx, erfinv, ndtr
from tracegraph.transforms.derivatives.custom import custom_jvp

__all__ = ["truncated_normal"]

_REFERENCE = 1.0
"""Probabilities in tails are quotients by that above this number, or above a greater bound."""

_ABOVE_REFERENCE = erfc(_REFERENCE / sqrt(2)) / 2

_STEPS = 2
"""Steps of Halley's iteration: the estimate is at most 0.01 off, and each step cubes the error."""


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

    They are JAX's up to rounding, and precise in the tails, where JAX's are not. Without a number
    between the bounds, they are the lower one; NaN if the upper one is below it. They are
    differentiable in both.

    Shape: `shape`; by default that to which the bounds broadcast.

    Raises:
        TypeError: `key` is not a key; `dtype` is not of real floating-point numbers.
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
    if is_known(lower) and is_known(upper):
        has_tails = _has_tails(lower, upper, target)
        found = _sample(low, high, unit(key, extents, target), has_tails)
    else:
        found = _between(low, high, unit(key, extents, target))
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
        if has_tails:
            in_tail = tnp.absolute(place) > dtype.type(1 - erfc(_centre(dtype) / sqrt(2)))
            found = root * erfinv(place)
            found = _with_tails(low, high, drawn, place > 0, in_tail, found)
        else:
            del drawn  # eagerly, its memory serves the next array
            found = root * erfinv(place)
        del place
        least = tnp.nextafter(low, dtype.type(np.inf))
        greatest = tnp.nextafter(high, dtype.type(-np.inf))
        alone = tnp.where(low <= high, low, dtype.type(np.nan))
        some = least <= greatest
        least, greatest = (tnp.where(some, bound, alone) for bound in (least, greatest))
        return tnp.minimum(tnp.maximum(found, least), greatest)


def _with_tails(low: Any, high: Any, drawn: Any, positive: Any, in_tail: Any, numbers: Any) -> Any:
    """Samples with those in tails; only those are computed, where it is known which they are."""
    if not isinstance(in_tail, np.ndarray) or not in_tail.ndim:
        return tnp.where(
            in_tail, cast(_in_tail(low, high, drawn, positive), numbers.dtype), numbers
        )
    if in_tail.any():
        shape = in_tail.shape
        there = (np.broadcast_to(x, shape)[in_tail] for x in (low, high, drawn, positive))
        numbers = np.array(numbers)
        numbers[in_tail] = cast(_in_tail(*there), numbers.dtype)
    return numbers


class _Side(NamedTuple):
    """The distribution seen from one side, on which its numbers are positive.

    `near` and `far` are the bounds. Probabilities above them are quotients by that above `start`,
    and `scaled` is that above `start` over the density there, but for a constant.
    """

    near: Any
    far: Any
    start: Any
    scaled: Any
    above_near: Any
    above_far: Any


def _scaled(x: Any) -> Any:
    return erfcx(x / x.dtype.type(sqrt(2)))


def _fall(start: Any, scaled: Any, distance: Any) -> Any:
    """How much the logarithm of the probability above falls from `start` on."""
    return distance * (start + distance / start.dtype.type(2)) - tnp.log(
        _scaled(start + distance) / scaled
    )


def _side(near: Any, far: Any) -> _Side:
    start = tnp.maximum(near, near.dtype.type(_REFERENCE))
    scaled = _scaled(start)
    return _Side(near, far, start, scaled, *(_above(start, scaled, x) for x in (near, far)))


def _above(start: Any, scaled: Any, bound: Any) -> Any:
    """The probability above a bound; constants where that is infinite, for derivatives."""
    number = start.dtype.type
    zero, finite = number(0), _counts(bound)
    bound = tnp.where(finite, bound, tnp.where(bound < zero, -number(np.inf), start))
    beyond = bound >= start
    far = tnp.exp(-_fall(start, scaled, tnp.where(beyond, bound - start, zero)))
    near = ndtr(tnp.where(beyond, zero, -bound)) / number(_ABOVE_REFERENCE)
    return tnp.where(beyond, tnp.where(finite, far, zero), near)


def _counts(bound: Any) -> Any:
    """Whether the density at a bound is not 0."""
    least = -sqrt(2 * log(np.finfo(bound.dtype).max))
    return (bound > bound.dtype.type(least)) & (bound < np.inf)


def _seen(low: Any, high: Any, drawn: Any, positive: Any) -> tuple[_Side, Any, Any]:
    """The side of each sample, the share of the distribution between it and the near bound there,
    and the probability above it. What is computed of bounds alone has their shape.
    """
    half = drawn.dtype.type(ml_dtypes.finfo(drawn.dtype).eps / 2)
    drawn = tnp.maximum(drawn, half)  # the numbers drawn as 0 are those below eps
    if drawn.dtype.itemsize == 2:
        low, high, drawn = (cast(x, np.float32) for x in (low, high, drawn))
    one = drawn.dtype.type(1)
    both = zip(_side(low, high), _side(-high, -low), strict=True)
    side = _Side(*(tnp.where(positive, x, y) for x, y in both))
    share = tnp.where(positive, drawn, one - drawn)
    return side, share, (one - share) * side.above_near + share * side.above_far


def _in_tail(low: Any, high: Any, drawn: Any, positive: Any) -> Any:
    """Samples beyond the reference on either side.

    The first estimate is that of a constant quotient of probability and density; the second has the
    quotient of bounds of both, DLMF 7.8.2.
    """
    side, _, above = _seen(low, high, drawn, positive)
    start, number = side.start, side.start.dtype.type
    two = number(2)

    def reached(fallen: Any) -> Any:
        return two * fallen / (start + tnp.hypot(start, tnp.sqrt(two * fallen)))

    def steepness(x: Any) -> Any:
        return x / two + tnp.hypot(x / two, number(1))

    fallen = tnp.maximum(-tnp.log(above), number(0))
    distance = reached(fallen)
    quotient = steepness(start) / steepness(start + distance)
    distance = reached(tnp.maximum(fallen + tnp.log(quotient), number(0)))
    for _ in range(_STEPS):
        scaled = _scaled(start + distance)
        rate = tnp.minimum(number(sqrt(2 / pi)) / scaled, np.finfo(start.dtype).max)
        fall = distance * (start + distance / two) - tnp.log(scaled / side.scaled)
        step = (fall - fallen) / rate
        curvature = (rate - (start + distance)) / two
        distance = distance - step / (number(1) - step * curvature)
    return tnp.where(positive, start + distance, -(start + distance))


@custom_jvp
def _between(low: Any, high: Any, drawn: Any) -> Any:
    """`_sample` with its derivatives, in which no step of an iteration takes part."""
    return _sample(low, high, drawn, True)


@_between.defjvp
def _slope(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """The density at a bound over that at the sample, times the share on the other side."""
    low, high, drawn = primals
    sample = _between(low, high, drawn)
    with np.errstate(all="ignore"):
        positive = sample > 0
        side, share, above = _seen(low, high, constant(drawn), positive)
        one, zero = above.dtype.type(1), above.dtype.type(0)
        scaled = _scaled(tnp.absolute(cast(sample, above.dtype))) / above

        def weight(share: Any, above: Any, bound: Any) -> Any:
            counts = _counts(bound)
            slope = share * above * scaled / _scaled(tnp.where(counts, bound, zero))
            return tnp.where(counts, slope, zero)

        of_near = weight(one - share, side.above_near, side.near)
        of_far = weight(share, side.above_far, side.far)
        of_low = cast(tnp.where(positive, of_near, of_far), sample.dtype)
        of_high = cast(tnp.where(positive, of_far, of_near), sample.dtype)
        return sample, of_low * tangents[0] + of_high * tangents[1]
