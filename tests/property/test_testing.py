"""What `tracegraph.testing` offers does what it says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings

from tests.helpers.running import eager
from tracegraph.testing import RandomProgram, assert_traced_equals_eager, programs
from tracegraph.testing.ways import WAYS


@given(program=programs())
def test_numbers_of_random_programs_are_small_and_whole(program: RandomProgram) -> None:
    for result in eager(program.function, *program.arguments):
        assert result.dtype.kind in "iuf"
        assert np.all(np.abs(result.astype("f8")) <= 100)
        assert np.all(result == np.rint(result))


@pytest.mark.parametrize(
    "construct", ["cond", "switch", "while", "fori", "scan", " @ ", "with set", "nan of", "1j of"]
)
def test_random_programs_have_every_construct(construct: str) -> None:
    # the first will do: making it smaller takes many times as long
    unshrunk = settings(max_examples=2000, phases=[Phase.generate], database=None)
    assert construct in find(programs(), lambda p: construct in p.text, settings=unshrunk).text


@settings(max_examples=8)
@given(program=programs(effects=True))
def test_random_programs_agree_in_every_way(program: RandomProgram) -> None:
    ways = [name for name, way in WAYS.items() if not way.on_gpu]
    assert_traced_equals_eager(program.function, *program.arguments, ulps=0, ways=ways)
