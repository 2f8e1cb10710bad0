"""A lattice Boltzmann method (D2Q9, BGK) on a ring of devices: the decay of a shear wave.

Particles of nine velocities move to neighbouring cells and collide there (Qian, d'Humieres and
Lallemand, Lattice BGK models for Navier-Stokes equation, 1992). Those that leave a block go to the
next device. The measured viscosity is that of the relaxation time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tracegraph
from tracegraph import PartitionSpec as P

MESH = tracegraph.Mesh(4, "rows", device="host")

VELOCITIES = [(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1), (1, -1), (-1, 1)]
"""Rows and columns that particles move in a step."""

WEIGHTS = np.array([4 / 9, *[1 / 9] * 4, *[1 / 36] * 4])


def equilibrium(density: Any, velocity: Any) -> Any:
    """The populations (9, rows, columns) of a density and a velocity (2, rows, columns)."""
    along = [3 * (r * velocity[0] + c * velocity[1]) for r, c in VELOCITIES]
    square = 1.5 * (velocity[0] ** 2 + velocity[1] ** 2)
    return np.stack(
        [w * density * (1 + a + a**2 / 2 - square) for w, a in zip(WEIGHTS, along, strict=True)]
    )


def moments(f: Any) -> tuple[Any, Any]:
    """Density and velocity."""
    density = f.sum(0)
    flow = [sum(v[axis] * f[i] for i, v in enumerate(VELOCITIES) if v[axis]) for axis in (0, 1)]
    return density, np.stack([flow[0] / density, flow[1] / density])


def stream(f: Any) -> Any:
    """Each population, moved: along columns within the block, along rows over devices."""
    before, behind = tracegraph.halo(f, "rows", axis=1)
    around = np.concatenate([before, f, behind], axis=1)
    rows = f.shape[1]
    return np.stack(
        [np.roll(around[i, 1 - r : 1 - r + rows], c, axis=1) for i, (r, c) in enumerate(VELOCITIES)]
    )


@tracegraph.jit
@tracegraph.shard(
    mesh=MESH,
    in_specs=(P(None, "rows"), P(), P()),
    out_specs=(P(None, "rows"), P()),
)
def evolve(velocity: Any, relaxation: Any, steps: Any) -> Any:
    """The velocity after some steps, and the mass, which stays."""

    def step(i: Any, f: Any) -> Any:
        return stream(f - (f - equilibrium(*moments(f))) / relaxation)

    f = equilibrium(np.ones_like(velocity[0]), velocity)
    density, velocity = moments(tracegraph.fori_loop(0, steps, step, f))
    return velocity, tracegraph.psum(density.sum(), "rows")


def viscosity(size: int, relaxation: float, steps: int) -> tuple[float, float, float]:
    """The viscosity of the decay of a wave, that of theory, and the relative change of mass."""
    wave = np.sin(2 * np.pi * np.arange(size) / size)[:, None] * np.ones(size)
    start = np.stack([0 * wave, 0.01 * wave])
    velocity, mass = evolve(start, relaxation, steps)
    left = np.vdot(np.asarray(velocity)[1], wave) / np.vdot(start[1], wave)
    measured = -np.log(left) / steps / (2 * np.pi / size) ** 2
    return float(measured), (relaxation - 0.5) / 3, abs(float(mass) / size**2 - 1)


def main() -> None:
    """Print both viscosities."""
    print(
        "viscosity {:.5f}, by theory {:.5f}; mass changed by {:.0e}".format(
            *viscosity(64, 0.8, 400)
        )
    )


if __name__ == "__main__":
    main()
