"""Fluids on a lattice: D2Q9 lattice Boltzmann around an obstacle.

Qian, d'Humières and Lallemand, "Lattice BGK models for Navier-Stokes equation", 1992.
"""

from __future__ import annotations

import numpy as np

from benchmarks.harness.agreement import within

from .program import Program

STEPS = 50
RATE = 1.2
DIRECTIONS = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1))
WEIGHTS = (4 / 9, *(1 / 9,) * 4, *(1 / 36,) * 4)
OPPOSITE = tuple(DIRECTIONS.index((-x, -y)) for x, y in DIRECTIONS)


def _flow(draw, n, dtype):
    shape = n, n + n // 2
    noise = 1 + 0.1 * draw.rng.random((9, *shape))
    obstacle = np.zeros(shape, bool)
    obstacle[n // 3 : n // 2, n // 4 : n // 2] = True
    return (np.array(WEIGHTS)[:, None, None] * noise).astype(dtype), obstacle


def _lattice_boltzmann(language):
    xp = language.xp

    def relaxed(f, density, x_speed, y_speed):
        energy = 1.5 * (x_speed * x_speed + y_speed * y_speed)
        values = []
        for i, (x, y) in enumerate(DIRECTIONS):
            along = 3 * (x * x_speed + y * y_speed)
            balance = WEIGHTS[i] * density * (1 + along + 0.5 * along * along - energy)
            values.append(f[i] + RATE * (balance - f[i]))
        return xp.stack(values)

    def simulate(f, obstacle):
        def step(i, f):
            moved = [xp.roll(f[q], DIRECTIONS[q], (0, 1)) for q in range(9)]
            f = xp.stack(moved)
            density = f.sum(0)
            x_speed = sum(x * f[q] for q, (x, _) in enumerate(DIRECTIONS) if x) / density
            y_speed = sum(y * f[q] for q, (_, y) in enumerate(DIRECTIONS) if y) / density
            bounced = xp.stack([f[q] for q in OPPOSITE])
            return xp.where(obstacle, bounced, relaxed(f, density, x_speed, y_speed))

        return language.loops.fori_loop(0, STEPS, step, f)

    return simulate


PROGRAMS = (
    Program(
        name="boltzmann",
        title=f"lattice Boltzmann, n by 1.5 n, an obstacle, {STEPS} steps",
        write=_lattice_boltzmann,
        inputs=_flow,
        sizes=(32, 128, 512),
        agrees=within(2e-3, 1e-8),
    ),
)
