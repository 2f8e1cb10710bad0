"""C functions among generated kernels, which run on the CPU, read what these have written."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest

from tests.emulation.plan_emulator import EmulatedPlans
from tests.programs.host_calls import PROGRAMS as CALLING
from tests.programs.host_calls import TYPE, Memory, N
from tracegraph import tree

MEMORY = Memory()
"""What the C function is given; its data is where the emulator puts the argument."""


WAYS = ("as_estimated", "unrolled", "one_kernel")
PROGRAMS = {
    name: (lambda x, program=program: program(x, MEMORY.call), (TYPE,))
    for name, program in CALLING.items()
}


@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize("name", PROGRAMS)
def test_both_read_what_the_other_has_written(
    name: str, seed: int | None, device: EmulatedPlans
) -> None:
    def place(addresses: Sequence[int]) -> None:
        (MEMORY.given.data,) = addresses

    eager = Memory()
    wanted = [np.array(y) for y in tree.leaves(CALLING[name](eager.owned("host"), eager.call))]
    MEMORY.clear()
    order = None if seed is None else Random(seed)
    found = device.run(name, np.zeros(N), order=order, place=place)
    assert MEMORY.noted == eager.noted
    for one, other in zip(tree.leaves(found), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)
