"""Random programs as native code give what the eager run gives."""

from __future__ import annotations

from hypothesis import given, settings

from tests.plan.native.running_natively import native
from tracegraph.testing import RandomProgram, assert_traced_equals_eager, programs


@settings(max_examples=25)
@given(program=programs())
def test_random_programs_agree(program: RandomProgram) -> None:
    assert_traced_equals_eager(
        program.function, *program.arguments, ulps=0, ways={"native": native}
    )
