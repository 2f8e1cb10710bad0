"""Derivatives at singular points, as generated CUDA C++ that runs on the CPU."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import tracegraph
from tests.emulation.emulator import COMPILER
from tests.emulation.plan_emulator import EmulatedPlans
from tests.programs.exact_derivatives import PROGRAMS

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> EmulatedPlans:
    programs = {name: (function, (x,)) for name, (function, x) in PROGRAMS.items()}
    return EmulatedPlans(programs, tmp_path_factory.mktemp("exact"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_are_those_of_the_host(name: str, plans: EmulatedPlans) -> None:
    function, x = PROGRAMS[name]
    found = plans.run(name, x, order=Random(name))
    expected = np.asarray(tracegraph.jit(function, device="host")(x))
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(np.asarray(found), expected, 1e-5, 1e-6)
