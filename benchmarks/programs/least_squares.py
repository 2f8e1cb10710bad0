"""Minimisation: Levenberg-Marquardt for a curve, and L-BFGS.

Marquardt, "An Algorithm for Least-Squares Estimation of Nonlinear Parameters", 1963; Liu and
Nocedal, "On the limited memory BFGS method for large scale optimization", 1989.
"""

from __future__ import annotations

import numpy as np

from benchmarks.harness.agreement import within

from .program import Program

MOST_STEPS = 400


def _curve(draw, n, dtype):
    """Noisy values of a decaying oscillation at n times, a first guess, and a tolerance."""
    times = np.linspace(0, 4, n)
    values = 2 * np.exp(-0.7 * times) * np.cos(3 * times) + 0.5
    values = values + 0.01 * draw.rng.standard_normal(n)
    guess = np.array([1.5, 0.5, 2.8, 0.3])
    tolerance = 1e-4 if dtype == np.float32 else 1e-10
    return times.astype(dtype), values.astype(dtype), guess.astype(dtype), tolerance


def _levenberg(language):
    xp = language.xp

    def fit(times, values, guess, tolerance):
        def parts(p):
            decay = xp.exp(-p[1] * times)
            cosine, sine = xp.cos(p[2] * times), xp.sin(p[2] * times)
            missed = p[0] * decay * cosine + p[3] - values
            slopes = [
                decay * cosine,
                -p[0] * times * decay * cosine,
                -p[0] * times * decay * sine,
                times * 0 + 1,
            ]
            return missed, xp.stack(slopes)

        def step(state):
            p, damping, cost, _, count = state
            missed, slopes = parts(p)
            square, pull = slopes @ slopes.T, slopes @ missed
            damped = square + damping * xp.diag(xp.diag(square))
            move = xp.linalg.solve(damped, pull[:, None])[:, 0]
            following, _ = parts(p - move)
            new = following @ following
            is_better = new < cost
            p = xp.where(is_better, p - move, p)
            damping = xp.where(is_better, damping * 0.3, damping * 4)
            change = xp.sqrt(move @ move)
            return p, damping, xp.where(is_better, new, cost), change, count + 1

        def unfinished(state):
            return (state[3] > tolerance) & (state[4] < MOST_STEPS)

        missed, _ = parts(guess)
        start = language.scalar(1e-2, guess), missed @ missed, language.scalar(1.0, guess), 0
        p, _, _, _, count = language.loops.while_loop(unfinished, step, (guess, *start))
        return p, count

    return fit


MEMORY = 5
DESCENTS = 490
BOTTOM = 1e-6


def _valley(draw, n, dtype):
    """Where the descent begins."""
    return (draw.uniform(n, dtype, -0.1, 0.1),)


def _lbfgs(language):
    """Descends the chained function of Rosenbrock, with steps that are halved."""
    xp = language.xp

    def height(x):
        rise = x[1:] - x[:-1] * x[:-1]
        return (10 * rise * rise).sum() + ((1 - x[:-1]) * (1 - x[:-1])).sum()

    def slope(x):
        rise = x[1:] - x[:-1] * x[:-1]
        first, second = -40 * x[:-1] * rise - 2 * (1 - x[:-1]), 20 * rise
        return xp.concatenate([first, x[:1] * 0]) + xp.concatenate([x[:1] * 0, second])

    def descend(x):
        def direction(g, moves, changes, weights, count):
            def back(i, state):
                q, factors = state
                at = (count - 1 - i) % MEMORY
                factor = weights[at] * (moves[at] @ q)
                return q - factor * changes[at], language.set_at(factors, at, factor)

            def forth(i, r):
                at = (count + i) % MEMORY
                return r + moves[at] * (factors[at] - weights[at] * (changes[at] @ r))

            factors = language.zeros((MEMORY,), g)
            q, factors = language.loops.fori_loop(0, MEMORY, back, (g, factors))
            last = (count - 1) % MEMORY
            squares = changes[last] @ changes[last]
            scale = xp.where(
                weights[last] > 0, 1 / xp.clip(weights[last] * squares, 1e-30, None), 1
            )
            return language.loops.fori_loop(0, MEMORY, forth, q * scale)

        def step(state):
            x, g, moves, changes, weights, count = state
            p = -direction(g, moves, changes, weights, count)
            here, along = height(x), g @ p

            def too_long(state):
                length, tries = state
                return (height(x + length * p) > here + 1e-4 * length * along) & (tries < 30)

            def halved(state):
                return state[0] * 0.5, state[1] + 1

            start = language.scalar(1.0, x), 0
            length, _ = language.loops.while_loop(too_long, halved, start)
            move = length * p
            following = slope(x + move)
            change = following - g
            product = move @ change
            at = count % MEMORY
            weight = xp.where(product > 1e-12, 1 / xp.clip(product, 1e-12, None), 0)
            return (
                x + move,
                following,
                language.set_at(moves, at, move),
                language.set_at(changes, at, change),
                language.set_at(weights, at, weight),
                count + 1,
            )

        def unfinished(state):
            return (state[1] @ state[1] > 1e-8) & (state[5] < DESCENTS)

        table = language.zeros((MEMORY, x.shape[0]), x)
        start = x, slope(x), table, table, language.zeros((MEMORY,), x), 0
        x, *_, count = language.loops.while_loop(unfinished, step, start)
        return height(x), count

    return descend


def _are_at_the_bottom(found, wanted):
    """Rounding decides on the way there, and how many steps it has."""
    heights = [float(results[0]) for results in (found, wanted)]
    return None if max(heights) < BOTTOM else f"heights {heights} are not at the bottom"


PROGRAMS = (
    Program(
        name="levenberg",
        title="Levenberg-Marquardt, a decaying oscillation at n times",
        write=_levenberg,
        inputs=_curve,
        sizes=(50, 1000, 100_000),
        agrees=within(1e-2, 1e-7, steps=0.3),
    ),
    Program(
        name="lbfgs",
        title=f"L-BFGS, {MEMORY} updates kept, Rosenbrock's function of n variables",
        write=_lbfgs,
        inputs=_valley,
        sizes=(20, 50, 100),
        agrees=_are_at_the_bottom,
    ),
)
