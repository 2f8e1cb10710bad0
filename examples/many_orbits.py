"""Ten thousand Kepler orbits, each integrated with steps of its own, as one graph.

`orbit` integrates one two-body orbit over one period by the Dormand-Prince method of order 5(4),
with an error estimate that chooses each step. `vmap` makes it a function of many orbits. Eccentric
ones need twice as many steps as round ones: each lane stops when its own period is over, after as
many steps, and with the same bits, as if it were integrated alone. With an NVIDIA GPU it is a
single launch of a CUDA graph; without, the same plan runs on the host.

The method: Hairer, Nørsett and Wanner, "Solving Ordinary Differential Equations I", 2nd edition,
chapters II.4 and II.5.

Run: python examples/many_orbits.py
"""

from __future__ import annotations

import time

import numpy as np

import tracegraph

ORBITS = 10_000
TOLERANCE = 1e-9
PERIOD = 2 * np.pi  # of a semi-major axis of 1, where the mass is 1

STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
ERROR = (71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)


def motion(state):
    """The derivative of position and velocity."""
    x, y, vx, vy = state
    r2 = x * x + y * y
    pull = -1 / (r2 * np.sqrt(r2))
    return vx, vy, pull * x, pull * y


def weighted(weights, slopes):
    """The sum of slopes with these weights, for each component."""
    return [
        sum(w * k for w, k in zip(weights, column, strict=True) if w)
        for column in zip(*slopes, strict=True)
    ]


def orbit(eccentricity):
    """The state after one period from the pericentre, and the number of steps taken and tried."""

    def unfinished(carry):
        return carry[1] < PERIOD

    def step(carry):
        state, t, h, taken, tried = carry
        h = np.minimum(h, PERIOD - t)
        slopes = [motion(state)]
        for weights in STAGES:
            moved = tuple(s + h * d for s, d in zip(state, weighted(weights, slopes), strict=True))
            slopes.append(motion(moved))
        squares = [
            (h * e / (TOLERANCE * (1 + np.maximum(np.abs(s), np.abs(m))))) ** 2
            for e, s, m in zip(weighted(ERROR, slopes), state, moved, strict=True)
        ]
        error = np.sqrt(sum(squares) / 4)
        ok = error <= 1
        state = tuple(np.where(ok, m, s) for s, m in zip(state, moved, strict=True))
        last = ok & (t + h >= PERIOD)
        t = np.where(last, PERIOD, np.where(ok, t + h, t))
        h = h * np.clip(0.9 * np.maximum(error, 1e-10) ** -0.2, 0.2, 5.0)
        return state, t, h, taken + ok, tried + 1

    pericentre = 1 - eccentricity
    speed = np.sqrt((1 + eccentricity) / pericentre)
    start = (pericentre, 0 * speed, 0 * speed, speed)
    state, _, _, taken, tried = tracegraph.while_loop(unfinished, step, (start, 0.0, 1e-3, 0, 0))
    return state, taken, tried


orbits = tracegraph.jit(tracegraph.vmap(orbit))
alone = tracegraph.jit(orbit)


def main():
    """Integrate, compare with the exact orbit and with single runs, print."""
    eccentricities = tracegraph.asarray(np.linspace(0, 0.95, ORBITS))
    (x, y, _, _), taken, tried = orbits(eccentricities)
    taken = np.asarray(taken)
    distance = np.hypot(np.asarray(x) - (1 - np.asarray(eccentricities)), np.asarray(y))

    repeats = 5
    start = time.perf_counter()
    for _ in range(repeats):
        np.asarray(orbits(eccentricities)[1])
    elapsed = (time.perf_counter() - start) / repeats

    same = True
    for lane in range(0, ORBITS, ORBITS // 5):
        single = alone(np.asarray(eccentricities)[lane])[0]
        pairs = zip(single, orbits(eccentricities)[0], strict=True)
        same &= all(np.asarray(one) == np.asarray(many)[lane] for one, many in pairs)

    counts = orbits.lower(eccentricities).plan.node_counts
    print(f"device             {x.device}")
    print(f"orbits             {ORBITS}")
    print(f"steps per orbit    {taken.min()} to {taken.max()}, {np.max(np.asarray(tried))} tried")
    print(f"graph nodes        {', '.join(f'{n} {kind}' for kind, n in sorted(counts.items()))}")
    print(f"builds             {orbits.stats()['builds']}")
    print(f"distance at the end {distance.max():.1e} at most, from the start of the orbit")
    print(f"same bits alone    {'yes' if same else 'no'}")
    print(f"time per call      {elapsed * 1e3:.1f} ms   (mean of {repeats})")
    if distance.max() > 1e-4 or not same:
        raise SystemExit("an orbit does not close, or differs from that of a single run")


if __name__ == "__main__":
    main()
