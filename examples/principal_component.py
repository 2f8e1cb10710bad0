"""The direction in which data vary most, by power iteration on rows that each process makes itself.

It runs alone, with a mesh of one device, and under a launcher, where each process has a device and
rows of its own:

    python examples/principal_component.py
    torchrun --nproc-per-node=2 examples/principal_component.py

No process ever has all rows. A step sums one vector over the devices, so that all of them have the
same direction, and the same answer to whether it still changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tracegraph
from tracegraph import PartitionSpec as P

DEVICE = None  # "host" and "cuda" are the kinds; None is that of functions on this machine


def component(mesh: tracegraph.Mesh) -> Any:
    """A function of rows that are divided over a mesh: their first principal component, its
    variance, and the number of steps.
    """

    def of_rows(rows: Any) -> Any:
        count = len(rows) * tracegraph.axis_size("rows")
        rows = rows - tracegraph.pmean(rows.mean(axis=0), "rows")

        def step(state: Any) -> Any:
            direction, _, _, steps = state
            image = tracegraph.psum(rows.T @ (rows @ direction), "rows") / count
            variance = np.sqrt(image @ image)
            after = image / variance
            return after, variance, np.abs(after - direction).max(), steps + 1

        size = rows.shape[1]
        first = np.full(size, size**-0.5), 0.0, 1.0, 0
        direction, variance, _, steps = tracegraph.while_loop(
            lambda state: (state[2] > 1e-12) & (state[3] < 1000), step, first
        )
        return direction, variance, steps

    return tracegraph.jit(tracegraph.shard(of_rows, mesh=mesh, in_specs=P("rows"), out_specs=P()))


def rows_of(device: int, count: int, size: int) -> Any:
    """The rows of a device: each column varies half as much as the one before."""
    rng = np.random.default_rng(device)
    return rng.standard_normal((count, size)) * 0.5 ** np.arange(size) + 3


def found(count: int, size: int) -> tuple[Any, float, int]:
    """The component of the rows of all devices."""
    mesh = tracegraph.Mesh(tracegraph.process_count(), "rows", device=DEVICE)
    local = [rows_of(device, count, size) for device in mesh.local_devices]
    rows = tracegraph.make_array_from_local(local, mesh, P("rows"))
    direction, variance, steps = component(mesh)(rows)
    return np.asarray(direction), float(variance), int(steps)  # the same in all processes


def main() -> None:
    """Print the component, in the first process."""
    tracegraph.distributed.initialize()
    direction, variance, steps = found(10_000, 8)
    if tracegraph.process_index() == 0:
        rows = 10_000 * tracegraph.process_count()
        print(f"of {rows} rows: variance {variance:.3f} after {steps} steps, along")
        print(direction.round(3))


if __name__ == "__main__":
    main()
