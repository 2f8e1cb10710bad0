"""Random programs as native code mean what they mean to NumPy, and print the same."""

from __future__ import annotations

from hypothesis import given, settings

from tests.helpers.running import eager
from tests.plan.native.running_natively import native
from tests.programs.printing import printed
from tracegraph.testing import RandomProgram, assert_traced_equals_eager, programs

few = settings(max_examples=15)  # each is compiled


@few
@given(program=programs())
def test_results_are_numpys(program: RandomProgram) -> None:
    assert_traced_equals_eager(
        program.function, *program.arguments, ulps=0, ways={"native": native}
    )


@few
@given(program=programs(max_steps=5, effects=True))
def test_prints_are_those_of_the_eager_run(program: RandomProgram) -> None:
    wanted = printed(eager, program.function, *program.arguments)
    assert printed(native, program.function, *program.arguments) == wanted
