"""One step after the other: a particle filter, and the edit distance of two texts.

Gordon, Salmond and Smith, "Novel approach to nonlinear/non-Gaussian Bayesian state estimation",
1993; Wagner and Fischer, "The String-to-String Correction Problem", 1974.
"""

from __future__ import annotations

import numpy as np

from benchmarks.harness.agreement import within

from .program import Program

OBSERVATIONS = 50


def _observations(draw, n, dtype):
    """What is observed, the noise of n particles at each step, and where sampling starts."""
    noise = draw.rng.standard_normal((OBSERVATIONS, n))
    observed = np.cumsum(draw.rng.standard_normal(OBSERVATIONS)) * 0.5
    return observed.astype(dtype), noise.astype(dtype), draw.uniform(OBSERVATIONS, dtype)


def _particle_filter(language):
    xp = language.xp

    def follow(observed, noise, offsets):
        particles = noise.shape[1]
        places = language.arange(particles, noise)

        def step(x, given):
            seen, noise, offset = given
            x = 0.9 * x + noise
            likelihood = -0.5 * (seen - x) * (seen - x)
            weights = xp.exp(likelihood - likelihood.max())
            weights = weights / weights.sum()
            mean = weights @ x
            chosen = xp.searchsorted(xp.cumsum(weights, 0), (places + offset) / particles)
            return x[xp.clip(chosen, 0, particles - 1)], mean

        return language.loops.scan(step, noise[0] * 0, (observed, noise, offsets))[1]

    return follow


def _texts(draw, n, dtype):
    """Two texts as codes, a few of them unlike, and the costs of a change and of a gap."""
    text = draw.rng.integers(0, 4, n)
    other = np.where(draw.rng.random(n) < 0.3, draw.rng.integers(0, 4, n), text)
    costs = np.array([1.0, 0.75], dtype)
    return text, other, costs


def _edit_distance(language):
    """By diagonals, whose places do not depend on each other."""
    xp = language.xp

    def distance(text, other, costs):
        n = text.shape[0]
        rows, heights = language.arange(n + 1, text), language.arange(n + 1, costs)
        change, gap = costs[0], costs[1]
        far = language.scalar(4.0 * n, costs)

        def before(diagonal):
            return xp.where(rows > 0, xp.roll(diagonal, 1, 0), far)

        def step(d, state):
            last, one_before = state
            columns = d - rows
            same = text[xp.clip(rows - 1, 0, n - 1)] == other[xp.clip(columns - 1, 0, n - 1)]
            replaced = before(one_before) + xp.where(same, 0 * change, change)
            shifted = xp.minimum(before(last), last) + gap
            found = xp.where(columns == 0, heights * gap, xp.minimum(replaced, shifted))
            found = xp.where(rows == 0, last + gap, found)
            inside = (columns >= 0) & (columns <= n)
            return xp.where(inside, found, far), last

        first = xp.where(rows == 0, 0 * gap, far)
        last, _ = language.loops.fori_loop(1, 2 * n + 1, step, (first, first * 0 + far))
        return last[n]

    return distance


def _edit_by_rows(language):
    """By rows: a running minimum along each, in which every place waits for the one before."""
    xp = language.xp

    def distance(text, other, costs):
        change, gap = costs[0], costs[1]
        heights = language.arange(other.shape[0] + 1, costs) * gap

        def row(above, letter):
            replaced = above[:-1] + xp.where(other == letter, 0 * change, change)
            found = xp.minimum(replaced, above[1:] + gap)
            found = xp.concatenate([above[:1] + gap, found])

            def place(before, here):
                here = xp.minimum(before + gap, here)
                return here, here

            _, found = language.loops.scan(place, found[0], found)
            return found, found[-1]

        return language.loops.scan(row, heights, text)[1][-1]

    return distance


PROGRAMS = (
    Program(
        name="particles",
        title=f"particle filter, {OBSERVATIONS} observations, resampled at each",
        write=_particle_filter,
        inputs=_observations,
        sizes=(500, 10_000, 100_000),
        agrees=within(5e-2, 1e-3),
    ),
    Program(
        name="edit",
        title="edit distance of two texts, by diagonals",
        write=_edit_distance,
        inputs=_texts,
        sizes=(60, 500, 4000),
        agrees=within(2e-3, 1e-8),
    ),
    Program(
        name="edit_rows",
        title="edit distance of two texts, row by row",
        write=_edit_by_rows,
        inputs=_texts,
        sizes=(60, 500, 4000),
        agrees=within(2e-3, 1e-8),
    ),
)
