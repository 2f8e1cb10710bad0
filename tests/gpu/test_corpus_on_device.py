"""Every corpus program, and random ones, give on the GPU what NumPy gives."""

from __future__ import annotations

from typing import Any

import pytest
from corpus import CASES
from hypothesis import given
from running import assert_case_agrees

import tracegraph
from tracegraph.testing import RandomProgram, assert_traced_equals_eager, programs


def on_device(function: Any, *arguments: Any) -> Any:
    return tracegraph.jit(function, device="cuda")(*arguments)


@pytest.mark.parametrize("name", CASES)
def test_result_is_that_of_numpy(name: str) -> None:
    assert_case_agrees(CASES[name], on_device)


@given(program=programs())
def test_random_programs_agree_with_numpy(program: RandomProgram) -> None:
    assert_traced_equals_eager(program.function, *program.arguments, run=on_device)
