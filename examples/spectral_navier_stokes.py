"""Flow in a periodic square by Fourier transforms whose rows are divided over devices.

A transform in two dimensions is one along the axis that each device has whole, a transpose over all
devices (`all_to_all`), and one along the other axis. Frequencies stay transposed. The vorticity
equation is integrated by Heun's method, dealiased by the rule of two thirds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tracegraph
from tracegraph import PartitionSpec as P

MESH = tracegraph.Mesh(4, "rows", device="host")


def transposed(x: Any) -> Any:
    """From rows of one axis to rows of the other."""
    return tracegraph.all_to_all(x, "rows", 1, 0, tiled=True).T


def forward(field: Any) -> Any:
    """Frequencies of a real field: rows are frequencies along columns."""
    return np.fft.fft(transposed(np.fft.fft(field, axis=1)), axis=1)


def backward(frequencies: Any) -> Any:
    """The field of frequencies: rows are points along columns."""
    return np.fft.ifft(transposed(np.fft.ifft(frequencies, axis=1)), axis=1).real


def numbers(size: int) -> tuple[Any, Any]:
    """The wave numbers of this device's frequencies, along rows and columns of the square."""
    every = np.fft.fftfreq(size, 1 / size)
    own = size // tracegraph.axis_size("rows")
    first = tracegraph.axis_index("rows") * own
    along_columns = tracegraph.dynamic_slice(tracegraph.numpy.asarray(every), (first,), (own,))
    return every[None, :], along_columns[:, None]


@tracegraph.jit
@tracegraph.shard(mesh=MESH, in_specs=(P("rows"), P(), P(), P()), out_specs=P("rows"))
def evolve(vorticity: Any, viscosity: Any, dt: Any, steps: Any) -> Any:
    """The vorticity after some steps."""
    size = vorticity.shape[1]
    kx, ky = numbers(size)
    square = kx**2 + ky**2
    inverse = np.where(square > 0, 1 / np.maximum(square, 1), 0)
    kept = (np.abs(kx) < size / 3) & (np.abs(ky) < size / 3)

    def slope(w: Any) -> Any:
        """The time derivative of frequencies of the vorticity."""
        stream = w * inverse
        u, v = backward(1j * ky * stream), backward(-1j * kx * stream)
        advected = u * backward(1j * kx * w) + v * backward(1j * ky * w)
        return -np.where(kept, forward(advected), 0) - viscosity * square * w

    def step(i: Any, w: Any) -> Any:
        first = slope(w)
        return w + dt / 2 * (first + slope(w + dt * first))

    return backward(tracegraph.fori_loop(0, steps, step, forward(vorticity)))


def taylor_green(size: int, time: float, steps: int, viscosity: float = 0.05) -> float:
    """The largest error for vortices that decay in place, over what is left of them."""
    angles = 2 * np.pi * np.arange(size) / size
    vortices = 2 * np.cos(angles)[:, None] * np.cos(angles)
    found = evolve(vortices, viscosity, time / steps, steps)
    left = np.exp(-2 * viscosity * time)
    return float(np.abs(np.asarray(found) / left - vortices).max())


def main() -> None:
    """Print the error, which falls with the square of the step."""
    for steps in (20, 40, 80):
        print(f"{steps:>3} steps: error {taylor_green(32, 2.0, steps):.2e}")


if __name__ == "__main__":
    main()
