"""Random programs mean the same eagerly, interpreted, optimized, and as plans on the host."""

from __future__ import annotations

import pytest
from hypothesis import given
from running import WAYS

from tracegraph.testing import RandomProgram, assert_traced_equals_eager, programs


@pytest.mark.parametrize("way", WAYS)
@given(program=programs())
def test_random_programs_agree_with_numpy(way: str, program: RandomProgram) -> None:
    assert_traced_equals_eager(program.function, *program.arguments, run=WAYS[way])
