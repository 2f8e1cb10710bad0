"""Random programs mean the same eagerly, interpreted, optimized, and as plans on the host."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.helpers.running import RUNS, WAYS, eager
from tests.programs.printing import printed
from tracegraph.testing import RandomProgram, assert_traced_equals_eager, programs


@pytest.mark.parametrize("way", WAYS)
@given(program=programs())
def test_random_programs_agree_with_numpy(way: str, program: RandomProgram) -> None:
    assert_traced_equals_eager(program.function, *program.arguments, ulps=0, ways={way: WAYS[way]})


@pytest.mark.parametrize("way", WAYS)
@given(program=programs(max_steps=5, effects=True))
def test_random_programs_print_what_they_print_eagerly(way: str, program: RandomProgram) -> None:
    wanted = printed(eager, program.function, *program.arguments)
    assert printed(WAYS[way], program.function, *program.arguments) == wanted * RUNS.get(way, 1)
