"""Elementwise ops of special complex numbers, as generated CUDA C++ that runs on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cases.special_values import CASES, assert_numpys
from tests.emulation.emulator import COMPILER
from tests.emulation.plan_emulator import EmulatedPlans

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> EmulatedPlans:
    programs = {name: (case.apply, case.operands) for name, case in CASES.items()}
    return EmulatedPlans(programs, tmp_path_factory.mktemp("special"))


def test_infinities_of_all_complex_functions_are_among_the_cases() -> None:
    assert {"sqrt_complex64", "sign_complex128", "power_complex64_complex64"} <= set(CASES)
    assert all(np.isinf(case.operands[-1]).any() for case in CASES.values())


@pytest.mark.parametrize("name", CASES)
def test_special_values_are_those_of_numpy(name: str, plans: EmulatedPlans) -> None:
    with np.errstate(all="ignore"):
        assert_numpys(CASES[name], lambda *operands: plans.run(name, *operands))
