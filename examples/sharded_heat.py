"""Heat flow on a ring of devices: an explicit scheme whose steps exchange one row each.

All steps are one loop of one launch. Nothing is summed over devices: each waits for its neighbours
alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tracegraph
from tracegraph import PartitionSpec as P

MESH = tracegraph.Mesh(4, "rows", device="host")


def laplacian(u: Any) -> Any:
    """The five-point Laplacian of a periodic field, times the square of the distance of points."""
    before, behind = tracegraph.halo(u, "rows")
    above = np.concatenate([before, u[:-1]])
    below = np.concatenate([u[1:], behind])
    return above + below + np.roll(u, 1, axis=1) + np.roll(u, -1, axis=1) - 4 * u


@tracegraph.jit
@tracegraph.shard(mesh=MESH, in_specs=(P("rows"), P(), P()), out_specs=P("rows"))
def diffuse(u: Any, rate: Any, steps: Any) -> Any:
    """The field after some steps; `rate` is at most a quarter."""
    return tracegraph.fori_loop(0, steps, lambda i, u: u + rate * laplacian(u), u)


def decay(size: int, rate: float, steps: int) -> tuple[float, float]:
    """How much a wave decays, and how much it must by the eigenvalue of the scheme."""
    angles = 2 * np.pi * np.arange(size) / size
    wave = np.sin(angles)[:, None] * np.cos(2 * angles)
    found = np.asarray(diffuse(wave, rate, steps))
    eigenvalue = 2 * np.cos(angles[1]) + 2 * np.cos(2 * angles[1]) - 4
    return float(np.vdot(found, wave) / np.vdot(wave, wave)), (1 + rate * eigenvalue) ** steps


def main() -> None:
    """Print both factors."""
    print("a wave decays by {:.12f}, its eigenvalue gives {:.12f}".format(*decay(64, 0.2, 500)))


if __name__ == "__main__":
    main()
