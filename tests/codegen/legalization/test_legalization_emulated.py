"""Plans without body updates, as C++ that runs on the CPU."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from lowering.legalization.legalize import legalize
from lowering.plan.target.features import Features
from tests.corpus import CASES, loops, nesting
from tests.emulation.emulator import COMPILER
from tests.emulation.plan_emulator import EmulatedPlans
from tests.helpers.forced import unscheduled
from tests.helpers.running import assert_case_agrees

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")

PLAIN = Features(body_updates=False)

BRANCHING = {
    name: case
    for name, case in CASES.items()
    if case.function.__module__ in (loops.__name__, nesting.__name__)
}


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> EmulatedPlans:
    programs = {name: (case.function, case.arguments) for name, case in BRANCHING.items()}
    folder = tmp_path_factory.mktemp("legalized")
    return EmulatedPlans(programs, folder, lambda stage: legalize(unscheduled(stage), PLAIN))


@pytest.mark.parametrize("name", BRANCHING)
def test_result_is_that_of_numpy(name: str, plans: EmulatedPlans) -> None:
    def run(function: Any, *arguments: Any) -> Any:
        return plans.run(name, *arguments, order=Random(len(name)))

    assert_case_agrees(CASES[name], run)
