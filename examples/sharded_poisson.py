"""A Poisson equation on four devices: conjugate gradients in one loop, which exchange halos.

The grid is divided along both axes. A step of the loop exchanges the edges of blocks and sums two
numbers over all devices; the condition of the loop is one of these sums, so that all devices leave
it at the same step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tracegraph
from tracegraph import PartitionSpec as P

MESH = tracegraph.Mesh((2, 2), ("x", "y"), device="host")


def neighbours(u: Any) -> Any:
    """The sum of the four neighbours of each point; outside of the square, u is zero."""
    west, east = tracegraph.halo(u, "x", axis=0, boundary=0.0)
    south, north = tracegraph.halo(u, "y", axis=1, boundary=0.0)
    rows = np.concatenate([west, u, east], axis=0)
    columns = np.concatenate([south, u, north], axis=1)
    return rows[:-2] + rows[2:] + columns[:, :-2] + columns[:, 2:]


def dot(u: Any, v: Any) -> Any:
    """The inner product of two fields, the same on all devices."""
    return tracegraph.psum(np.sum(u * v), ("x", "y"))


@tracegraph.jit
@tracegraph.shard(mesh=MESH, in_specs=(P("x", "y"), P()), out_specs=(P("x", "y"), P(), P()))
def solve(f: Any, tolerance: Any) -> Any:
    """U with 4 u - (its neighbours) = f, the norm of the residual, and the number of steps."""

    def goes_on(state: Any) -> Any:
        return state[3] > tolerance**2

    def step(state: Any) -> Any:
        u, r, p, before, steps = state
        q = 4 * p - neighbours(p)
        alpha = before / dot(p, q)
        u, r = u + alpha * p, r - alpha * q
        after = dot(r, r)
        return u, r, r + after / before * p, after, steps + 1

    first = np.zeros_like(f), f, f, dot(f, f), 0
    u, _, _, squares, steps = tracegraph.while_loop(goes_on, step, first)
    return u, np.sqrt(squares), steps


def error(size: int) -> tuple[float, int]:
    """The largest error for x (1 - x) exp(x) y (1 - y) on size x size points, and the steps."""
    h = 1 / (size + 1)
    y = np.linspace(h, 1 - h, size)
    x = y[:, None]
    exact = x * (1 - x) * np.exp(x) * y * (1 - y)
    f = np.exp(x) * ((3 * x + x**2) * y * (1 - y) + 2 * x * (1 - x))
    u, _, steps = solve(h**2 * f, 1e-12)
    return float(np.abs(np.asarray(u) - exact).max()), int(steps)


def main() -> None:
    """Print errors, which fall with the square of the distance of points."""
    for size in (16, 32, 64):
        print("{:>3} x {:<3} error {:.2e} in {} steps".format(size, size, *error(size)))


if __name__ == "__main__":
    main()
