"""Assignments of points: k-means, and optimal transport by Sinkhorn's iteration.

Lloyd, "Least squares quantization in PCM", 1982; Cuturi, "Sinkhorn Distances", 2013.
"""

from __future__ import annotations

import numpy as np

from benchmarks.harness.agreement import within

from .program import Program

CLUSTERS, FEATURES = 8, 4
MOST_STEPS = 100


def _groups(draw, n, dtype):
    """Points of groups that overlap, and random points as the first centres."""
    centres = 2 * draw.rng.standard_normal((CLUSTERS, FEATURES))
    group = draw.rng.integers(0, CLUSTERS, n)
    points = centres[group] + draw.rng.standard_normal((n, FEATURES))
    return points.astype(dtype), points[:CLUSTERS].astype(dtype)


def _kmeans(language):
    xp = language.xp

    def nearest(points, centres):
        apart = points[:, None, :] - centres[None, :, :]
        return xp.argmin((apart * apart).sum(2), 1)

    def fit(points, centres):
        ones = points[:, 0] * 0 + 1

        def step(state):
            centres, groups, _, count = state
            sizes = language.add_at(language.zeros((CLUSTERS,), points), groups, ones)
            sums = language.add_at(language.zeros((CLUSTERS, FEATURES), points), groups, points)
            means = sums / xp.clip(sizes, 1.0, None)[:, None]
            centres = xp.where(sizes[:, None] > 0, means, centres)
            found = nearest(points, centres)
            return centres, found, (found != groups).any(), count + 1

        def unfinished(state):
            return state[2] & (state[3] < MOST_STEPS)

        groups = nearest(points, centres)
        start = centres, groups, (groups == groups).any(), 0
        centres, _, _, count = language.loops.while_loop(unfinished, step, start)
        return centres, count

    return fit


def _masses(draw, n, dtype):
    """Costs between n points and n others, and the masses of both."""
    places, others = draw.rng.random((2, n, 2))
    cost = ((places[:, None] - others) ** 2).sum(-1)
    masses = draw.rng.uniform(0.5, 1.5, (2, n))
    masses /= masses.sum(1, keepdims=True)
    tolerance = 1e-4 if dtype == np.float32 else 1e-9
    return cost.astype(dtype), *masses.astype(dtype), tolerance


def _sinkhorn(language):
    xp = language.xp

    def transport(cost, here, there, tolerance):
        kernel = xp.exp(cost * -10.0)

        def step(state):
            u, v, _, count = state
            u = here / (kernel @ v)
            v = there / (u @ kernel)
            off = xp.abs(u * (kernel @ v) - here).sum()
            return u, v, off, count + 1

        def unfinished(state):
            return (state[2] > tolerance) & (state[3] < MOST_STEPS)

        start = here * 0 + 1, there * 0 + 1, language.scalar(np.inf, here), 0
        u, v, _, count = language.loops.while_loop(unfinished, step, start)
        return u @ ((kernel * cost) @ v), count

    return transport


PROGRAMS = (
    Program(
        name="kmeans",
        title=f"k-means, n points in {FEATURES} dimensions, {CLUSTERS} clusters",
        write=_kmeans,
        inputs=_groups,
        sizes=(800, 10_000, 100_000),
        agrees=within(1e-2, 1e-8, steps=0.3),
    ),
    Program(
        name="sinkhorn",
        title="optimal transport between n and n points",
        write=_sinkhorn,
        inputs=_masses,
        sizes=(64, 256, 1024),
        agrees=within(1e-3, 1e-7, steps=0.2),
    ),
)
