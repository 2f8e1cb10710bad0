"""Planning makes no reference cycles: what it used goes at once, with no garbage collection."""

from __future__ import annotations

import gc

import pytest
from corpus import CASES

import tracegraph


@pytest.mark.parametrize("name", CASES)
def test_a_program_is_planned_without_cyclic_garbage(name: str) -> None:
    case = CASES[name]

    def plan() -> None:
        tracegraph.jit(case.function, device="host").lower(*case.arguments)

    plan()  # what is remembered for good is made now
    gc.disable()
    gc.freeze()  # what is there already is not looked at
    try:
        plan()
        assert gc.collect() == 0
    finally:
        gc.unfreeze()
        gc.enable()
