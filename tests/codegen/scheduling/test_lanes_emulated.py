"""Loops with a thread for each lane, as generated CUDA C++ that runs on the CPU."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from random import Random

import numpy as np
import pytest

from lowering.plan.target.overrides import Choices
from tests.emulation.emulator import COMPILER
from tests.emulation.plan_emulator import EmulatedPlans
from tests.helpers.forced import scheduled
from tests.helpers.running import eager
from tests.programs.lanes import PROGRAMS
from tracegraph import tree

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> EmulatedPlans:
    folder: Path = tmp_path_factory.mktemp("lanes")
    return EmulatedPlans(PROGRAMS, folder, partial(scheduled, chosen=Choices(loops="per_lane")))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_what_numpy_gives(name: str, plans: EmulatedPlans) -> None:
    function, arguments = PROGRAMS[name]
    found = tree.leaves(plans.run(name, *arguments, order=Random(name)))
    for new, old in zip(found, tree.leaves(eager(function, *arguments)), strict=True):
        np.testing.assert_allclose(np.asarray(new), np.asarray(old), 1e-12)
