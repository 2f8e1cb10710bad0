"""Clusters of points that are divided over devices (Lloyd's algorithm), until no centre moves.

A step sums the points and the counts of each cluster over devices, so that all have the same
centres, and the same answer to whether they still move.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tracegraph
from tracegraph import PartitionSpec as P

MESH = tracegraph.Mesh(4, "points", device="host")


def nearest(points: Any, centres: Any) -> Any:
    """The number of the nearest centre of each point."""
    distances = (centres**2).sum(1) - 2 * points @ centres.T
    return np.argmin(distances, axis=1)


@tracegraph.jit
@tracegraph.shard(
    mesh=MESH,
    in_specs=(P("points"), P()),
    out_specs=(P(), P("points"), P()),
)
def clusters(points: Any, centres: Any) -> Any:
    """The centres, the cluster of each point, and the number of steps."""

    def step(state: Any) -> Any:
        centres, _, steps = state
        member = nearest(points, centres)[:, None] == np.arange(centres.shape[0])
        sums, counts = tracegraph.psum((member.T * 1.0 @ points, member.sum(0)), "points")
        after = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centres)
        return after, np.any(after != centres), steps + 1

    found, _, steps = tracegraph.while_loop(lambda state: state[1], step, (centres, True, 0))
    return found, nearest(points, found), steps


def data(count: int, clusters: int) -> tuple[Any, Any]:
    """Points around some centres, and the first of each as a guess."""
    rng = np.random.default_rng(0)
    centres = rng.uniform(-10, 10, (clusters, 2))
    points = centres[np.arange(count) % clusters] + rng.standard_normal((count, 2))
    return points, points[:clusters]


def main() -> None:
    """Print how far points are from their centres."""
    points, guess = data(4096, 8)
    centres, labels, steps = clusters(points, guess)
    distances = points - np.asarray(centres)[np.asarray(labels)]
    print(f"{int(steps)} steps; mean square distance {np.mean((distances**2).sum(1)):.3f}")


if __name__ == "__main__":
    main()
