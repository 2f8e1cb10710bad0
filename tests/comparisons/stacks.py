"""Stacks of several sources, which one kernel writes: integers, exact in every order."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.devices import Device

RANDOM = np.random.default_rng(0)
SHIFTS = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1))


def rolled(f: Any) -> Any:
    return np.stack([np.roll(f[k], shift, (0, 1)) for k, shift in enumerate(SHIFTS)])


def in_place(f: Any) -> Any:
    def step(k: Any, f: Any) -> Any:
        return np.stack([f[1] - k, f[0] + f[3], f[3], -f[2], f[8], f[4], f[6], f[5], f[7] + f[1]])

    return tracegraph.fori_loop(0, 4, step, f)


def streamed(f: Any) -> Any:
    """Steps as those of the lattice Boltzmann method."""

    def step(k: Any, f: Any) -> Any:
        moved = rolled(f)
        bounced = np.stack([moved[q] for q in (0, 3, 4, 1, 2, 7, 8, 5, 6)])
        density = moved.sum(0)
        relaxed = np.stack([moved[q] + (density + q - moved[q]) // 4 for q in range(9)])
        return np.where(f[0] > 0, bounced, relaxed)

    return tracegraph.fori_loop(0, 3, step, f)


def between(f: Any) -> Any:
    return np.stack([f[:, k] * k for k in range(5)], axis=1)


def joined(f: Any) -> Any:
    """In a loop, in place where an element is replaced by one made of itself."""

    def step(k: Any, f: Any) -> Any:
        parts = [f[:, q] + q for q in range(f.shape[1])]
        return np.concatenate(parts, 1).reshape(f.shape) + f

    return tracegraph.fori_loop(0, 3, step, f)


FUNCTIONS = {f.__name__: f for f in (rolled, in_place, streamed, between, joined)}
SHAPES = {"odd": (9, 7, 33), "vectors": (9, 8, 64)}
PROGRAMS = {
    f"{name} {size} {np.dtype(dtype)}": (function, (RANDOM.integers(-9, 10, shape).astype(dtype),))
    for name, function in FUNCTIONS.items()
    for size, shape in SHAPES.items()
    for dtype in ("f4", "f8", "i8")
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_stacks_are_numpys(name: str, device: Device) -> None:
    function, (x,) = PROGRAMS[name]
    np.testing.assert_array_equal(device.run(name, x, order=Random(name)), function(x))
