"""All pairs of points: gravity, and the cheapest way to move one cloud onto another.

Cuturi, "Sinkhorn distances: lightspeed computation of optimal transport", 2013.
"""

from __future__ import annotations

import numpy as np

from benchmarks.harness.agreement import within

from .at_sizes import at_sizes


def _bodies(draw, n, dtype):
    """Positions, velocities and masses."""
    x, v = draw.rng.standard_normal((2, n, 3))
    return x.astype(dtype), (v / 10).astype(dtype), (draw.rng.random(n) / n).astype(dtype)


def n_body(language, functions, steps):
    """Bodies that attract each other, with the kinetic energy at each step of the leapfrog."""

    def attraction(x, masses):
        apart = x[None] - x[:, None]
        square = (apart * apart).sum(-1) + 0.01
        return ((masses[None] * square**-1.5)[..., None] * apart).sum(1)

    def simulate(x, v, masses):
        def step(state, _):
            x, v, a = state
            v = v + 0.005 * a
            x = x + 0.01 * v
            a = attraction(x, masses)
            v = v + 0.005 * a
            return (x, v, a), 0.5 * (masses * (v * v).sum(1)).sum()

        start = x, v, attraction(x, masses)
        (x, v, _), energies = language.loops.scan(step, start, None, length=steps)
        return x, v, energies

    return simulate


SMOOTHING = 0.1
MOST_ROUNDS = 100


def _clouds(draw, n, dtype):
    x, y = draw.rng.standard_normal((2, n, 2))
    return x.astype(dtype), (y + 1).astype(dtype)


def sinkhorn(language, functions, steps):
    """The cost of a transport plan, its potentials, and how many rounds these took."""
    xp, logsumexp = language.xp, functions.logsumexp

    def transport(x, y):
        cost = ((x[:, None] - y[None]) ** 2).sum(-1)
        share = -float(np.log(x.shape[0]))

        def improve(state):
            u, v, _, count = state
            after = SMOOTHING * (share - logsumexp((v[None] - cost) / SMOOTHING, 1))
            v = SMOOTHING * (share - logsumexp((after[:, None] - cost) / SMOOTHING, 0))
            return after, v, xp.max(xp.abs(after - u)), count + 1

        def unfinished(state):
            return (state[2] > 1e-3) & (state[3] < steps)

        start = xp.zeros_like(cost[0]), xp.zeros_like(cost[0]), language.scalar(np.inf, cost), 0
        u, v, _, count = language.loops.while_loop(unfinished, improve, start)
        plan = xp.exp((u[:, None] + v[None] - cost) / SMOOTHING)
        return (plan * cost).sum(), u, v, count

    return transport


def _rays(draw, n, dtype):
    """Where the rays through a picture's columns and rows go."""
    places = np.linspace(-1, 1, n).astype(dtype)
    return places, places


def sphere_tracer(language, functions, steps):
    """A sphere and a ring on a floor; a pixel is written, and mapped over the picture."""
    xp, transforms = language.xp, language.transforms

    def length(p):
        return xp.sqrt((p * p).sum())

    def distance(p):
        def point(*coordinates):
            return xp.asarray(coordinates, dtype=p.dtype)

        sphere = length(p - point(0.0, 0.2, 3.0)) - 1.0
        q = p - point(1.2, -0.2, 2.5)
        around = xp.sqrt(q[0] ** 2 + q[2] ** 2) - 0.6
        ring = xp.sqrt(around**2 + q[1] ** 2) - 0.2
        return xp.minimum(xp.minimum(sphere, ring), p[1] + 1.0)

    def pixel(u, v):
        ray = xp.stack([u, v, xp.ones_like(u)])
        ray = ray / length(ray)

        def march(state):
            t, count, _ = state
            near = distance(t * ray)
            return t + near, count + 1, near

        def unfinished(state):
            return (state[2] > 1e-3) & (state[0] < 20.0) & (state[1] < steps)

        start = xp.zeros_like(u), 0, xp.ones_like(u)
        t, count, _ = language.loops.while_loop(unfinished, march, start)
        light = xp.asarray([0.577, 0.577, -0.577], dtype=u.dtype)
        bright = xp.maximum(transforms.grad(distance)(t * ray) @ light, 0.0)
        return xp.where(t < 20.0, 0.1 + 0.9 * bright, 0.0).astype(u.dtype), count

    columns = transforms.vmap(pixel, in_axes=(0, None))
    return transforms.vmap(columns, in_axes=(None, 0))


def _pictures_agree(found, wanted):
    """Rays that pass an edge closely may end elsewhere: one pixel of two hundred may differ."""
    for name, a, b in zip(("brightness", "steps"), found, wanted, strict=True):
        if a.shape != b.shape:
            return f"{name} has shape {a.shape}, not {b.shape}"
        other = np.mean(np.abs(a.astype(np.float64) - b) > 1e-2)
        if not other < 5e-3:
            return f"{name} differs in {other:.1%} of the pixels"
    return None


PROGRAMS = (
    *at_sizes(
        "n_body",
        "gravity between all pairs of n bodies",
        n_body,
        _bodies,
        small=(256, 100),
        large=(4096, 20),
        agrees=within(2e-3, 1e-9),
        numpy=True,
    ),
    *at_sizes(
        "sinkhorn",
        "optimal transport between clouds of n points",
        sinkhorn,
        _clouds,
        small=(100, MOST_ROUNDS),
        large=(2000, MOST_ROUNDS),
        agrees=within(2e-2, 1e-6, steps=0.2),
        numpy=True,
    ),
    *at_sizes(
        "sphere_tracer",
        "a picture of n by n pixels by sphere tracing",
        sphere_tracer,
        _rays,
        small=(64, 128),
        large=(512, 128),
        agrees=_pictures_agree,
    ),
)
