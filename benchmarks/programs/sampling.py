"""Samples and their order: Hamiltonian Monte Carlo, and quantiles by bisection.

Duane, Kennedy, Pendleton and Roweth, "Hybrid Monte Carlo", 1987.
"""

from __future__ import annotations

import numpy as np

from benchmarks.harness.agreement import within

from .program import Program

DIMENSIONS = 5
DRAWS = 200
LEAPS = 10
LEAP = 0.1


def _chains(draw, n, dtype):
    """Where n chains begin, the inverse of a covariance, and random numbers for each draw."""
    root = np.eye(DIMENSIONS) + 0.3 * draw.rng.standard_normal((DIMENSIONS, DIMENSIONS))
    start = draw.rng.standard_normal((n, DIMENSIONS))
    momenta = draw.rng.standard_normal((DRAWS, n, DIMENSIONS))
    arrays = start, root @ root.T, momenta, np.log(draw.rng.random((DRAWS, n)))
    return [x.astype(dtype) for x in arrays]


def _monte_carlo(language):
    xp = language.xp

    def sample(start, precision, momenta, chances):
        def energy(x, p):
            return 0.5 * (x * (x @ precision)).sum(1) + 0.5 * (p * p).sum(1)

        def leap(_, state):
            x, p = state
            p = p - 0.5 * LEAP * (x @ precision)
            x = x + LEAP * p
            return x, p - 0.5 * LEAP * (x @ precision)

        def step(x, given):
            momentum, chance = given
            moved, p = language.loops.fori_loop(0, LEAPS, leap, (x, momentum))
            takes = chance < energy(x, momentum) - energy(moved, p)
            x = xp.where(takes[:, None], moved, x)
            return x, x

        _, draws = language.loops.scan(step, start, (momenta, chances))
        return draws.mean((0, 1)), (draws * draws).mean((0, 1))

    return sample


LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


def _numbers(draw, n, dtype):
    return draw.rng.standard_normal(n).astype(dtype), np.array(LEVELS, dtype)


def _quantiles(language):
    """Bounds of each quantile are halved until one element is left between them."""
    xp = language.xp

    def quantiles(x, levels):
        wanted = xp.floor(levels * x.shape[0])

        def step(state):
            low, high, _, count = state
            middle = 0.5 * (low + high)
            below = (x[:, None] <= middle).sum(0)
            is_below = below <= wanted
            low, high = xp.where(is_below, middle, low), xp.where(is_below, high, middle)
            between = ((x[:, None] > low) & (x[:, None] <= high)).sum(0)
            return low, high, between.max(), count + 1

        def unfinished(state):
            return (state[2] > 1) & (state[3] < 200)

        everywhere = levels * 0
        start = everywhere + x.min() - 1, everywhere + x.max() + 1, (x == x).sum(), 0
        low, high, _, count = language.loops.while_loop(unfinished, step, start)
        is_between = (x[:, None] > low) & (x[:, None] <= high)
        return xp.where(is_between, x[:, None], 0 * x[:, None]).sum(0), count

    return quantiles


PROGRAMS = (
    Program(
        name="monte_carlo",
        title=f"Hamiltonian Monte Carlo, n chains, {DRAWS} draws of {LEAPS} steps",
        write=_monte_carlo,
        inputs=_chains,
        sizes=(16, 1000, 10_000),
        agrees=within(2e-2, 1e-7),
    ),
    Program(
        name="quantiles",
        title=f"{len(LEVELS)} quantiles of n numbers by bisection",
        write=_quantiles,
        inputs=_numbers,
        sizes=(1000, 30_000, 1_000_000),
        agrees=within(1e-6, 1e-12),
    ),
)
