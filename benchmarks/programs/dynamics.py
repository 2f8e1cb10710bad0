"""Integration in time: an adaptive Runge-Kutta method, and molecular dynamics.

Tsitouras, "Runge-Kutta pairs of order 5(4)", 2011; Verlet, "Computer experiments on classical
fluids", 1967.
"""

from __future__ import annotations

import itertools

import numpy as np

from benchmarks.harness.agreement import within

from .program import Program

MOST_STEPS = 10_000
WEIGHTS = (
    (),
    (0.161,),
    (-0.008480655492356989, 0.335480655492357),
    (2.8971530571054935, -6.359448489975075, 4.3622954328695815),
    (5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525),
    (
        5.86145544294642,
        -12.92096931784711,
        8.159367898576159,
        -0.071584973281401,
        -0.028269050394068383,
    ),
    (
        0.09646076681806523,
        0.01,
        0.4798896504144996,
        1.379008574103742,
        -3.290069515436081,
        2.324710524099774,
    ),
)
ERROR_WEIGHTS = (
    -0.00178001105222577714,
    -0.0008164344596567469,
    0.007880878010261995,
    -0.1447110071732629,
    0.5823571654525552,
    -0.45808210592918697,
    0.015151515151515152,
)


def populations(draw, n, dtype):
    """Prey and predators, in n places."""
    tolerance = 1e-4 if dtype == np.float32 else 1e-8
    return draw.uniform((2, n), dtype, 0.5, 2.0), 10.0, tolerance


def _hunted(xp, y):
    """How fast prey and predators become more."""
    prey, predators = y[0], y[1]
    return xp.stack([prey * (1.1 - 0.4 * predators), predators * (0.1 * prey - 0.4)])


def _whirls(draw, n, dtype):
    """Where n trajectories of Lorenz's system begin; they end before rounding decides."""
    tolerance = 1e-4 if dtype == np.float32 else 1e-8
    return draw.uniform((3, n), dtype, 0.9, 1.1), 5.0, tolerance


def _whirling(xp, y):
    """Lorenz, "Deterministic Nonperiodic Flow", 1963."""
    x, y, z = y[0], y[1], y[2]
    return xp.stack([10 * (y - x), x * (28 - z) - y, x * y - (8 / 3) * z])


def tsit5(language, loop, slope_of=_hunted):
    """Integrates with adaptive steps, which `loop(unfinished, step, state)` makes."""
    xp = language.xp

    def slope(y):
        return slope_of(xp, y)

    def weighted(weights, slopes):
        terms = (weight * slope for weight, slope in zip(weights, slopes, strict=True))
        return sum(terms)

    def solve(y, end, tolerance):
        def step(state):
            t, y, h, accepted, count = state
            h = xp.minimum(h, end - t)
            slopes = [slope(y)]
            for weights in WEIGHTS[1:]:
                following = y + h * weighted(weights, slopes)
                slopes.append(slope(following))
            error = h * weighted(ERROR_WEIGHTS, slopes)
            scaled = error / (tolerance * (1 + xp.maximum(xp.abs(y), xp.abs(following))))
            norm = xp.sqrt(xp.mean(scaled * scaled))
            fits = norm <= 1
            factor = xp.clip(0.9 * xp.clip(norm, 1e-10, None) ** -0.2, 0.2, 10.0)
            return (
                xp.where(fits, t + h, t),
                xp.where(fits, following, y),
                h * factor,
                accepted + xp.where(fits, 1, 0),
                count + 1,
            )

        def unfinished(state):
            return (state[0] < end) & (state[4] < MOST_STEPS)

        start = language.scalar(0.0, y), y, language.scalar(0.01, y), 0, 0
        _, y, _, accepted, count = loop(unfinished, step, start)
        return y, accepted, count

    return solve


MD_STEPS = 20
TIME_STEP = 0.002


def _atoms(draw, n, dtype):
    """Atoms near a lattice, whose box holds one in each cell, and their velocities."""
    edge = round(n ** (1 / 3) + 0.4999)
    cells = np.array(list(itertools.islice(itertools.product(range(edge), repeat=3), n)), float)
    positions = 1.2 * cells + draw.rng.uniform(0, 0.1, (n, 3))
    velocities = draw.rng.standard_normal((n, 3))
    return positions.astype(dtype), velocities.astype(dtype), 1.2 * edge


def _molecular_dynamics(language):
    xp = language.xp
    reach = 2.5

    def forces(x, box):
        apart = x[:, None, :] - x[None, :, :]
        apart = apart - box * xp.round(apart / box)
        square = (apart * apart).sum(2)
        near = (square > 0) & (square < reach * reach)
        inverse = xp.where(near, 1 / xp.where(near, square, 1.0), 0.0)
        sixth = inverse * inverse * inverse
        pull = 24 * inverse * sixth * (2 * sixth - 1)
        return (pull[:, :, None] * apart).sum(1), 2 * (sixth * (sixth - 1)).sum()

    def simulate(x, v, box):
        def step(i, state):
            x, v, force, _ = state
            v = v + (0.5 * TIME_STEP) * force
            x = (x + TIME_STEP * v) % box
            force, energy = forces(x, box)
            return x, v + (0.5 * TIME_STEP) * force, force, energy

        x, v, _, energy = language.loops.fori_loop(0, MD_STEPS, step, (x, v, *forces(x, box)))
        return v, energy + 0.5 * (v * v).sum()

    return simulate


PROGRAMS = (
    Program(
        name="tsit5",
        title="Tsit5 with adaptive steps, predator and prey in n places",
        write=lambda language: tsit5(language, language.loops.while_loop),
        inputs=populations,
        sizes=(1, 256, 65_536),
        agrees=within(1e-2, 1e-6, steps=0.2),
    ),
    Program(
        name="lorenz",
        title="Tsit5 with adaptive steps, n trajectories of Lorenz's system",
        write=lambda language: tsit5(language, language.loops.while_loop, _whirling),
        inputs=_whirls,
        sizes=(1, 256, 65_536),
        agrees=within(5e-2, 1e-5, steps=0.2),
    ),
    Program(
        name="molecules",
        title=f"Lennard-Jones atoms, all pairs, {MD_STEPS} steps",
        write=_molecular_dynamics,
        inputs=_atoms,
        sizes=(64, 256, 1024),
        agrees=within(2e-3, 1e-8),
    ),
)
