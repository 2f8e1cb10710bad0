"""Random programs, as generated CUDA C++ that runs on the CPU, give what NumPy gives."""

from __future__ import annotations

import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.emulation.emulator import COMPILER
from tests.emulation.plan_emulator import EmulatedPlans
from tests.helpers.running import eager
from tracegraph.testing import RandomProgram, assert_traced_equals_eager, programs

BATCH = 15
"""Programs that are compiled together; shrinking would compile each candidate."""


@pytest.mark.skipif(COMPILER is None, reason="needs g++")
@settings(max_examples=max(settings().max_examples // 2 // BATCH, 2), phases=[Phase.generate])
@given(batch=st.lists(programs(), min_size=BATCH, max_size=BATCH), donate=st.booleans())
def test_random_programs_agree_with_numpy(batch: list[RandomProgram], donate: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        named = {str(n): (p.function, p.arguments) for n, p in enumerate(batch)}
        plans = EmulatedPlans(named, Path(folder), donate=donate)
        for name, program in enumerate(batch):
            check(plans, str(name), program)


@pytest.mark.skipif(COMPILER is None, reason="needs g++")
@settings(max_examples=max(settings().max_examples // 2 // BATCH, 2), phases=[Phase.generate])
@given(batch=st.lists(programs(max_steps=5, effects=True), min_size=BATCH, max_size=BATCH))
def test_random_programs_print_what_they_print_eagerly(batch: list[RandomProgram]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        named = {str(n): (p.function, p.arguments) for n, p in enumerate(batch)}
        plans = EmulatedPlans(named, Path(folder))
        for name, program in enumerate(batch):
            with redirect_stdout(StringIO()) as wanted:
                eager(program.function, *program.arguments)
            with redirect_stdout(StringIO()) as printed:
                plans.run(str(name), *program.arguments, order=Random(name))
            assert printed.getvalue() == wanted.getvalue(), program


def check(plans: EmulatedPlans, name: str, program: RandomProgram) -> None:
    for order in (None, Random(0)):

        def run(function: Any, *arguments: Any) -> Any:
            return plans.run(name, *arguments, order=order)  # noqa: B023 - called at once

        try:
            assert_traced_equals_eager(
                program.function, *program.arguments, ulps=0, ways={"emulated": run}
            )
        except AssertionError as error:
            error.add_note(repr(program))
            raise
