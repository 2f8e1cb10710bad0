"""Gradients through loops and branches, as generated CUDA C++ that runs on the CPU."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.emulation.emulator import COMPILER
from tests.emulation.plan_emulator import EmulatedPlans
from tests.helpers.forced import FORCED, scheduled
from tests.programs.gradients import PROGRAMS, X
from tracegraph import grad

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")


WAYS = ("as_estimated", "both", "one_kernel", "cluster", "grid")


@pytest.fixture(scope="module", params=WAYS)
def plans(request: Any, tmp_path_factory: pytest.TempPathFactory) -> EmulatedPlans:
    programs = {p.__name__: (grad(p), (X,)) for p in PROGRAMS}
    planned = partial(scheduled, chosen=FORCED[request.param])
    return EmulatedPlans(programs, tmp_path_factory.mktemp(request.param), planned)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_gradient_is_that_of_the_host(program: Any, plans: EmulatedPlans) -> None:
    found = plans.run(program.__name__, X, order=Random(program.__name__))
    np.testing.assert_allclose(np.asarray(found), grad(program)(X), 1e-12, 1e-12)
