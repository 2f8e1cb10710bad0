"""Equations on grids: electromagnetic waves, diffusion, and a shock.

Yee, "Numerical solution of initial boundary value problems involving Maxwell's equations in
isotropic media", 1966; Peaceman and Rachford, "The numerical solution of parabolic and elliptic
differential equations", 1955.
"""

from __future__ import annotations

import numpy as np

from benchmarks.harness.agreement import within

from .at_sizes import at_sizes


def _glass(draw, n, dtype):
    """What the electric field changes by, in a square room with a pane of glass."""
    permittivity = np.ones((n, n))
    permittivity[n // 2 :, n // 4 : n // 2] = 4.0
    return ((0.5 / permittivity).astype(dtype),)


def maxwell(language, functions, steps):
    """The fields between hard walls, from a source that ends."""
    xp, plus = language.xp, functions.plus
    every, inner, but_last = slice(None), slice(1, -1), slice(None, -1)

    def simulate(change):
        n = change.shape[0]

        def step(t, fields):
            e, hx, hy = fields
            hx = plus(hx, (every, but_last), -0.5 * (e[:, 1:] - e[:, :-1]))
            hy = plus(hy, (but_last,), 0.5 * (e[1:] - e[:-1]))
            curl = (hy[1:-1, 1:-1] - hy[:-2, 1:-1]) - (hx[1:-1, 1:-1] - hx[1:-1, :-2])
            e = plus(e, (inner, inner), change[1:-1, 1:-1] * curl)
            pulse = xp.exp(-(((t - 40) / 12.0) ** 2)).astype(change.dtype)
            return plus(e, (n // 3, n // 3), pulse), hx, hy

        nothing = xp.zeros_like(change)
        return language.loops.fori_loop(0, steps, step, (nothing, nothing, nothing))

    return simulate


def _temperatures(draw, n, dtype):
    """Random ones in a square, and how far heat goes in half a step."""
    return draw.rng.standard_normal((n, n)).astype(dtype), np.asarray(0.4, dtype)


def alternating_directions(language, functions, steps):
    """Heat in a square, whose walls are cold: one axis is implicit in turn."""
    xp = language.xp

    def second_difference(u):
        padded = xp.pad(u, ((0, 0), (1, 1)))
        return padded[:, 2:] - 2 * u + padded[:, :-2]

    def simulate(u, reach):
        n = u.shape[0]
        place, ones = xp.arange(n), xp.ones_like(u)
        lower = xp.where(place > 0, -reach, 0 * reach) * ones
        upper = xp.where(place < n - 1, -reach, 0 * reach) * ones
        diagonal = (1 + 2 * reach) * ones

        def implicit(u):
            return functions.solve_tridiagonal(lower, diagonal, upper, u[..., None])[..., 0]

        def step(_, u):
            across = u.T
            half = implicit(across + reach * second_difference(across)).T
            return implicit(half + reach * second_difference(half.T).T)

        return language.loops.fori_loop(0, steps, step, u)

    return simulate


VISCOSITY = 0.005
MOST_CORRECTIONS = 20


def _wave(draw, n, dtype):
    """One period of a sine, and the correction that is small enough."""
    wave = np.sin(2 * np.pi * np.linspace(0, 1, n)).astype(dtype)
    return wave, np.asarray(1e-4 if dtype == np.float32 else 1e-10, dtype)


def burgers(language, functions, steps):
    """Burgers' equation by implicit steps; Newton's method solves each."""
    xp = language.xp

    def simulate(wave, tolerance):
        n = wave.shape[0]
        dx, dt = 1 / n, 2 / n

        def equation(u, before):
            """What is left, and the lower, middle and upper diagonals of its derivative."""
            padded = xp.pad(u, 1)
            right, left = padded[2:], padded[:-2]
            flow = u * (right - left) / (2 * dx)
            spread = VISCOSITY * (right - 2 * u + left) / dx**2
            return (
                u - before + dt * (flow - spread),
                dt * (-u / (2 * dx) - VISCOSITY / dx**2),
                1 + dt * ((right - left) / (2 * dx) + 2 * VISCOSITY / dx**2),
                dt * (u / (2 * dx) - VISCOSITY / dx**2),
            )

        def step(before, _):
            def correct(state):
                u, _, count = state
                rest, lower, diagonal, upper = equation(u, before)
                wall = xp.zeros_like(u[:1])
                lower = xp.concatenate([wall, lower[1:]])
                upper = xp.concatenate([upper[:-1], wall])
                found = functions.solve_tridiagonal(lower, diagonal, upper, rest[:, None])[:, 0]
                return u - found, xp.max(xp.abs(found)), count + 1

            def unfinished(state):
                return (state[1] > tolerance) & (state[2] < MOST_CORRECTIONS)

            far = language.scalar(np.inf, wave)
            u, _, count = language.loops.while_loop(unfinished, correct, (before, far, 0))
            return u, count

        return language.loops.scan(step, wave, None, length=steps)

    return simulate


PROGRAMS = (
    *at_sizes(
        "maxwell",
        "Maxwell's equations in two dimensions by finite differences in time",
        maxwell,
        _glass,
        small=(128, 200),
        large=(1024, 500),
        agrees=within(2e-4, 1e-10),
        numpy=True,
    ),
    *at_sizes(
        "alternating_directions",
        "heat in a square, implicit along one axis after the other",
        alternating_directions,
        _temperatures,
        small=(64, 20),
        large=(512, 50),
        agrees=within(2e-4, 1e-10),
    ),
    *at_sizes(
        "burgers",
        "Burgers' equation, Newton's method in each implicit step",
        burgers,
        _wave,
        small=(256, 50),
        large=(4096, 50),
        agrees=within(2e-3, 1e-8, steps=0.5),
    ),
)
