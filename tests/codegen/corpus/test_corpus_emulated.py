"""Every corpus program, as generated CUDA C++ that runs on the CPU, gives what NumPy gives."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.corpus import CASES
from tests.emulation.emulator import COMPILER
from tests.emulation.plan_emulator import EmulatedPlans
from tests.helpers.running import assert_case_agrees

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> EmulatedPlans:
    programs = {name: (case.function, case.arguments) for name, case in CASES.items()}
    return EmulatedPlans(programs, tmp_path_factory.mktemp("corpus"))


@pytest.mark.parametrize("name", CASES)
def test_result_is_that_of_numpy(name: str, plans: EmulatedPlans) -> None:
    def run(function: Any, *arguments: Any) -> Any:
        return plans.run(name, *arguments)

    def run_in_random_order(function: Any, *arguments: Any) -> Any:
        return plans.run(name, *arguments, order=Random(len(name)))

    assert_case_agrees(CASES[name], run)
    assert_case_agrees(CASES[name], run_in_random_order)
