"""Loops that keep what their branches compute, as kernels on the CPU, with every schedule."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.emulation.emulator import COMPILER
from tests.emulation.plan_emulator import EmulatedPlans
from tests.helpers.forced import FORCED, scheduled
from tests.unit.passes.test_once import LOOPS
from tracegraph import tree

RNG = np.random.default_rng(0)
A = np.eye(5) + RNG.random((5, 5)) / 5
B = RNG.random((5, 1))


@pytest.mark.skipif(COMPILER is None, reason="needs g++")
@pytest.mark.parametrize("way", [None, "one_kernel", "unrolled", "both"])
def test_results_are_those_of_the_program(way: str | None, tmp_path: Path) -> None:
    programs: dict[str, Any] = {loop.__name__: (loop, (A, B, 4)) for loop in LOOPS}
    options = {} if way is None else {"planned": lambda stage: scheduled(stage, FORCED[way])}
    plans = EmulatedPlans(programs, tmp_path, **options)
    for loop in LOOPS:
        for k in (4, 1, 99):
            wanted = tree.leaves(loop(A, B, k))
            found = tree.leaves(plans.run(loop.__name__, A, B, k, order=Random(k)))
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-9)
