"""How quantiles are found: the index in sorted rows, by each of NumPy's methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tracegraph.numpy.elementwise import around, where
from tracegraph.numpy.sorted_rows import as_index
from tracegraph.numpy.ufuncs import (
    ceil,
    equal,
    floor,
    logical_and,
    maximum,
)


class QuantileMethod(NamedTuple):
    """How a quantile is found.

    `virtual` is the index of quantiles `q` in sorted rows of `n`. If it is not an integer, `gamma`
    changes the part beyond the element before it; without `gamma`, it always is one.
    """

    virtual: Callable[[Any, Any], Any]
    gamma: Callable[[Any, Any], Any] | None = lambda gamma, virtual: gamma


def _between(alpha: float, beta: float) -> QuantileMethod:
    """The continuous methods of Hyndman and Fan, "Sample quantiles in statistical packages"."""
    return QuantileMethod(lambda n, q: n * q + (alpha + q * (1 - alpha - beta)) - 1)


def _along_row(n: Any, q: Any) -> Any:
    return (n - 1) * q


def _observation(virtual: Any, is_before: Callable[[Any, Any], Any]) -> Any:
    """The element before, where that holds of its distance and the index, or else the one after."""
    before = floor(virtual)
    chosen = where(is_before(virtual - before, virtual), before, before + 1)
    return maximum(as_index(chosen), 0)


METHODS: Mapping[str, QuantileMethod] = {
    "inverted_cdf": QuantileMethod(
        lambda n, q: _observation(n * q - 1, lambda gamma, _: equal(gamma, 0)), None
    ),
    "averaged_inverted_cdf": QuantileMethod(
        lambda n, q: n * q - 1, lambda gamma, _: where(equal(gamma, 0), 0.5, 1.0)
    ),
    "closest_observation": QuantileMethod(
        lambda n, q: _observation(
            n * q - 1 - 0.5,
            lambda gamma, at: logical_and(equal(gamma, 0), equal(floor(at) % 2, 1)),
        ),
        None,
    ),
    "interpolated_inverted_cdf": _between(0, 1),
    "hazen": _between(0.5, 0.5),
    "weibull": _between(0, 0),
    "linear": QuantileMethod(_along_row),
    "median_unbiased": _between(1 / 3.0, 1 / 3.0),
    "normal_unbiased": _between(3 / 8.0, 3 / 8.0),
    "lower": QuantileMethod(lambda n, q: as_index(floor(_along_row(n, q))), None),
    "higher": QuantileMethod(lambda n, q: as_index(ceil(_along_row(n, q))), None),
    "midpoint": QuantileMethod(
        lambda n, q: 0.5 * (floor(_along_row(n, q)) + ceil(_along_row(n, q))),
        lambda _, virtual: where(equal(virtual % 1, 0), 0.0, 0.5),
    ),
    "nearest": QuantileMethod(lambda n, q: as_index(around(_along_row(n, q))), None),
}
