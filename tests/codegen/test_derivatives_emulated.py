"""Gradients through loops and branches, as generated CUDA C++ that runs on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulator import COMPILER
from gradient_programs import PROGRAMS, X
from plan_emulator import EmulatedPlans

from tracegraph import grad

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> EmulatedPlans:
    programs = {p.__name__: (grad(p), (X,)) for p in PROGRAMS}
    return EmulatedPlans(programs, tmp_path_factory.mktemp("derivatives"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_gradient_is_that_of_the_host(program: Any, plans: EmulatedPlans) -> None:
    found = plans.run(program.__name__, X)
    np.testing.assert_allclose(np.asarray(found), grad(program)(X), 1e-12, 1e-12)
