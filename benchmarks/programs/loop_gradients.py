"""Gradients through loops: a recurrent network, Newton's method, adaptive integration.

The last two run until they are done, at most `MOST_STEPS` steps. Elman, "Finding structure in
time", 1990; Tsitouras, "Runge-Kutta pairs of order 5(4)", 2011.
"""

from __future__ import annotations

from benchmarks.harness.agreement import within

from .differentiated import with_gradient
from .dynamics import populations, tsit5

STEPS = 1000
MOST_STEPS = 1000


def _sequence(draw, n, dtype):
    """The weights of n units, and what they are given at each step."""
    weights = draw.rng.standard_normal((n, n)) / n**0.5
    return weights.astype(dtype), draw.rng.standard_normal((STEPS, n)).astype(dtype)


def _recurrent(language, _):
    xp = language.xp

    def loss(weights, given):
        def step(state, x):
            state = xp.tanh(weights @ state + x)
            return state, (state * state).mean()

        return language.loops.scan(step, given[0] * 0, given)[1].mean()

    return loss


def _numbers(draw, n, dtype):
    return (draw.uniform(n, dtype, 1.0, 1e6),)


def _newton(language, loop):
    """The sum of cube roots, found at once."""
    xp = language.xp

    def roots(a):
        limit = 1e-5 if a.dtype == "float32" else 1e-13

        def unfinished(x):
            return (xp.abs(x * x * x - a) > limit * a).any()

        return loop(unfinished, lambda x: (2 * x + a / (x * x)) / 3, a, MOST_STEPS).sum()

    return roots


def _integrated(language, loop):
    """The sum of populations at the end, by those at the start."""

    def total(y, end, tolerance):
        def bounded(unfinished, step, state):
            return loop(unfinished, step, state, MOST_STEPS)

        return tsit5(language, bounded)(y, end, tolerance)[0].sum()

    return total


PROGRAMS = (
    *with_gradient(
        "recurrent",
        f"loss of a recurrent network, scan of {STEPS} steps",
        _recurrent,
        inputs=_sequence,
        sizes=(64, 256),
        agrees=within(1e-2, 1e-9),
    ),
    *with_gradient(
        "newton",
        f"n cube roots by Newton's method, at most {MOST_STEPS} steps",
        _newton,
        inputs=_numbers,
        sizes=(1000, 10_000),
        agrees=within(1e-2, 1e-9),
    ),
    *with_gradient(
        "integration",
        f"Tsit5 with adaptive steps in n places, at most {MOST_STEPS} steps",
        _integrated,
        inputs=populations,
        sizes=(1, 256),
        agrees=within(2e-2, 1e-6),
    ),
)
