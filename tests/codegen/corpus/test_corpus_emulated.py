"""Every corpus program, as generated CUDA C++ that runs on the CPU, gives what NumPy gives."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.corpus import CASES
from tests.helpers.devices import Device
from tests.helpers.running import assert_case_agrees

PROGRAMS = {name: (case.function, case.arguments) for name, case in CASES.items()}


@pytest.mark.parametrize("name", CASES)
def test_result_is_that_of_numpy(name: str, device: Device) -> None:
    def run_in_random_order(function: Any, *arguments: Any) -> Any:
        return device.run(name, *arguments, order=Random(len(name)))

    assert_case_agrees(CASES[name], run_in_random_order)
