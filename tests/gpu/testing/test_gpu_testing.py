"""`tracegraph.testing` runs functions on the GPU, in all its ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracegraph
from tests.programs.printing import Step, nests, steps
from tracegraph import debug
from tracegraph.errors import StepLimitError
from tracegraph.testing import (
    RandomProgram,
    arrays,
    assert_traced_equals_eager,
    programs,
)
from tracegraph.testing.ways import WAYS

GPU_WAYS = [name for name, way in WAYS.items() if way.on_gpu]


@pytest.mark.parametrize("way", GPU_WAYS)
def test_each_way_agrees(way: str) -> None:
    assert_traced_equals_eager(steps, np.arange(5.0), 4, ways=way)


@pytest.mark.parametrize("way", GPU_WAYS)
@settings(max_examples=5)
@given(program=programs(max_steps=5, effects=True))
def test_random_programs_agree(way: str, program: RandomProgram) -> None:
    assert_traced_equals_eager(program.function, *program.arguments, ulps=0, ways=way)


@pytest.mark.parametrize("way", GPU_WAYS)
@settings(max_examples=5)
@given(function=nests(), start=st.integers(0, 7))
def test_prints_and_failures_agree(way: str, function: Step, start: int) -> None:
    assert_traced_equals_eager(function, np.int64(start), raises=StepLimitError, ways=way)


@settings(max_examples=10)
@given(drawn=arrays("f64[n,3]", "f64[3]", min_value=-9, max_value=9, layouts=True))
def test_all_ways_include_those_of_the_gpu(drawn: Any) -> None:
    assert_traced_equals_eager(lambda x, y: x * y - 1, *drawn)


def test_prints_and_failures_of_functions_that_return_nothing() -> None:
    def show(x: Any) -> None:
        debug.print("x = {}", x)

    def fail(x: Any) -> None:
        show(x)
        tracegraph.while_loop(lambda x: x > 0, lambda x: x + 1, x, max_steps=5)

    assert_traced_equals_eager(show, np.arange(3.0))
    assert_traced_equals_eager(fail, 1, raises=StepLimitError)


def test_a_difference_on_the_gpu_is_found() -> None:
    """`x.device` is a fact of the trace: the program for a GPU is another one."""

    def told(x: Any) -> Any:
        return x + (1 if getattr(x, "device", "host").startswith("cuda") else 0)

    with pytest.raises(AssertionError) as caught:
        assert_traced_equals_eager(told, np.arange(3.0))
    assert "when it runs on the GPU ('cuda'):" in str(caught.value)
    assert "result at [0]: eagerly 0.0, now 1.0" in str(caught.value)
    assert "as eagerly: interpreted, optimized, host," in str(caught.value)
