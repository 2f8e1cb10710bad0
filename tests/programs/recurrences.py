"""Scans that are linear recurrences, and run in chunks on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tracegraph
from tracegraph import scan

LONG = 1003
RNG = np.random.default_rng(8)
X, Y = RNG.standard_normal((LONG, 3)), RNG.standard_normal((LONG, 3))
SINGLE = X.astype("float32")
FLAGS = RNG.random((LONG, 3)) < 0.1
UNIT = RNG.uniform(0, 1, (LONG, 3))

Function = Callable[..., Any]


def running(step: Function, first: Any, *xs: Any, **options: Any) -> Any:
    """A scan that stacks what each step carries."""

    def both(h: Any, x: Any) -> Any:
        after = step(h, *x)
        return after, after

    return scan(both, first, xs, **options)


def average(h: Any, x: Any) -> Any:
    return h + 0.1 * (x - h)


def several(state: Any, x: Any) -> Any:
    mean, square, count = state
    return average(mean, x), 0.99 * square + 0.01 * x * x, count + 2


def derived(x: Any) -> Any:
    return tracegraph.grad(lambda x: (running(average, np.zeros(3), x)[1] ** 2).sum())(x)


ZERO = np.zeros(3)

LINEAR: dict[str, tuple[Function, tuple[Any, ...]]] = {
    "an average": (lambda x: running(average, ZERO, x), (X,)),
    "float32": (
        lambda x: running(lambda h, x: h * np.float32(0.5) - x, ZERO.astype("f4"), x),
        (SINGLE,),
    ),
    "sums, from the end": (lambda x: running(lambda h, x: x + h, ZERO, x, reverse=True), (X,)),
    "restarts": (
        lambda x, new: running(lambda h, x, new: np.where(new, x, 0.9 * h + x), ZERO, x, new),
        (X, FLAGS),
    ),
    "flags as factors": (
        lambda x, end: running(
            lambda h, x, end: x + 0.95 * (1 - end) * h, ZERO, x, end, reverse=True
        ),
        (X, FLAGS),
    ),
    "factors between 0 and 1": (
        lambda x, a: running(lambda h, x, a: a * h - (1 - a) * x, ZERO, x, 1 / (1 + np.exp(-a))),
        (X, Y),
    ),
    "decays": (
        lambda x, a: running(
            lambda h, x, a: np.exp(-np.abs(a)) * h / 2 + np.tanh(a) * -h / 4, ZERO, x, a
        ),
        (X, Y),
    ),
    "several arrays": (lambda x: running(several, (ZERO, ZERO, np.int32(7)), x), (X,)),
    "complex": (lambda x: running(lambda h, x: (0.6 + 0.8j) * h + x, ZERO + 0j, x), (X,)),
    "integers": (
        lambda x: running(lambda h, x: 3 * h - x, np.int64(1), x),
        ((X[:, 0] * 9).astype(int),),
    ),
    "products with a matrix": (
        lambda x, w: running(lambda h, x: 0.9 * h + w @ x, ZERO, x),
        (X, RNG.standard_normal((3, 3))),
    ),
    "only the last": (lambda x: scan(lambda h, x: (0.99 * h + x, None), ZERO, x)[0], (X,)),
    "no slices": (lambda x: scan(lambda h, _: (0.9 * h + x, h), ZERO, length=LONG), (X[0],)),
    "what is stacked is not linear": (
        lambda x: scan(lambda h, x: (0.9 * h + x, np.sin(h) * x), ZERO, x),
        (X,),
    ),
    "a factor that is an argument of a constant": (
        lambda x: running(lambda h, x, a: a * h + x, ZERO, x, UNIT),
        (X,),
    ),
    "a derivative": (derived, (X,)),
}
"""Functions of scans that run in chunks."""
