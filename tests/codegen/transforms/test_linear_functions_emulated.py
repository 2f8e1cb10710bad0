"""Linear functions, pullbacks and rules at high orders, as generated CUDA C++ run on the CPU."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.emulation.emulator import COMPILER
from tests.emulation.plan_emulator import EmulatedPlans
from tests.helpers.forced import FORCED, scheduled
from tests.programs.linear_functions import LINEAR_PROGRAMS, X
from tracegraph import tree

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")


@pytest.fixture(scope="module", params=["as_estimated", "one_kernel"])
def plans(request: Any, tmp_path_factory: pytest.TempPathFactory) -> EmulatedPlans:
    programs = {p.__name__: (p, (X,)) for p in LINEAR_PROGRAMS}
    planned = partial(scheduled, chosen=FORCED[request.param])
    return EmulatedPlans(programs, tmp_path_factory.mktemp(request.param), planned)


@pytest.mark.parametrize("program", LINEAR_PROGRAMS, ids=lambda p: p.__name__)
def test_programs_give_what_they_give_eagerly(program: Any, plans: EmulatedPlans) -> None:
    found = tree.leaves(plans.run(program.__name__, X, order=Random(program.__name__)))
    for one, other in zip(found, tree.leaves(program(X)), strict=True):
        exact = np.asarray(other)
        tolerance = 1e-5 if exact.dtype == np.float32 else 1e-11
        np.testing.assert_allclose(np.asarray(one), exact, tolerance, tolerance)
