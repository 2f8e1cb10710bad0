"""Programs that write windows of arrays: points of a nest must not disturb each other."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from tests.helpers.devices import Device
from tests.programs.windows import ARRAYS, NAMED, in_a_loop, program_of, random_steps
from tracegraph import tree

LARGE = tuple(
    np.random.default_rng(seed).integers(-9, 9, (37, 45)).astype(float) for seed in range(3)
)
N = np.int64(2)
RANDOM = [random_steps(Random(seed), 2 + seed % 7) for seed in range(24)]
PROGRAMS: dict[str, Any] = {
    **{
        f"{f.__name__} of {len(x)}": (f, (N, x, *rest))
        for f in NAMED
        for x, *rest in (ARRAYS, LARGE)
    },
    **{f"random {k}": (program_of(steps), (N, *ARRAYS)) for k, steps in enumerate(RANDOM)},
    **{
        f"random {k} in a loop": (in_a_loop(program_of(steps)), (N, *ARRAYS))
        for k, steps in enumerate(RANDOM)
    },
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_windows_are_those_that_numpy_writes(name: str, device: Device) -> None:
    function, arguments = PROGRAMS[name]
    for order in (None, *map(Random, range(2))):
        found = device.run(name, *arguments, order=order)
        for got, wanted in zip(tree.leaves(found), tree.leaves(function(*arguments)), strict=True):
            np.testing.assert_array_equal(got, wanted)
