"""Random programs whose arguments a C function overwrites between their steps."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracegraph
from lowering.host.executable import HostExecutable
from lowering.lower import lower
from tests.helpers.running import traced
from tests.programs.host_calls import COMPILER, Overwritten
from tracegraph.testing.blocks import draw_block
from tracegraph.testing.values import Known, arrays
from tracegraph.testing.ways import CONDITIONAL, LOWERINGS, using

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")

Array = np.ndarray[Any, Any]

CONSTRUCT = re.compile(" = (cond|switch|while|fori|scan|chain) ")
"""Steps that may return an argument as it is: whether that is a copy then is not said."""


@dataclass(frozen=True)
class Program:
    """A function, and its arguments with what they are overwritten by."""

    function: Callable[..., Any]
    memory: Overwritten
    text: str

    def __repr__(self) -> str:
        return f"{self.text}\n  of {self.memory.first}, then {self.memory.others}"


@st.composite
def overwritten(draw: st.DrawFn) -> Program:
    """A program of arrays, and these with what they are overwritten by, call by call."""
    first = tuple(draw(arrays()) for _ in range(draw(st.integers(1, 3))))
    block = draw_block(draw, [Known.of(a) for a in first], 2, 6, "  ", False)
    calls = draw(st.lists(st.integers(0, len(block.steps)), min_size=1, max_size=3))
    memory = Overwritten(first, len(calls))
    heads = [line for line in block.text.splitlines() if re.match(r"  v\d", line)]
    constructs = [bool(CONSTRUCT.search(head)) for head in heads]
    made = range(block.first, len(block.known))
    chosen = draw(st.lists(st.sampled_from([*made, *range(len(first))]), min_size=1, max_size=4))

    def function(*values: Any) -> Any:
        env = list(values)
        for position in range(len(block.steps) + 1):
            for _ in range(calls.count(position)):
                memory.call()
            if position < len(block.steps):
                found = block.steps[position](env)
                env.extend(map(np.positive, found) if constructs[position] else found)
        return tuple(env[i] for i in (*chosen, made[-1]))

    text = f"{block.text}\n  calls before steps {calls}, returned are {[*chosen, made[-1]]}"
    return Program(function, memory, text)


def results(found: Sequence[Any]) -> list[Array]:
    return [np.array(each) for each in found]


def assert_same(found: Sequence[Any], wanted: Sequence[Array]) -> None:
    for one, other in zip(results(found), wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def as_eagerly(function: Callable[..., Any], memory: Overwritten) -> list[Array]:
    """The results of NumPy, in which each value but a view of an argument is a copy."""
    memory.clear()
    with np.errstate(all="ignore"):
        return results(function(*memory.arrays))


@given(program=overwritten())
def test_each_step_reads_what_the_memory_has_then(program: Program) -> None:
    function, memory = program.function, program.memory
    wanted = as_eagerly(function, memory)
    stage = traced(function, *memory.arrays)
    plans = [lower(stage.optimized, device) for device in ("host", "cuda")]
    plans.append(lower(stage.optimized, "cuda", fusion=False))
    for chosen in (CONDITIONAL, LOWERINGS["unrolled"].chosen, LOWERINGS["both"].chosen):
        with using(chosen):
            plans.append(lower(stage.optimized, "cuda"))
    for seed, plan in enumerate(plans):
        for order in (None, Random(seed)):
            memory.clear()
            assert_same(HostExecutable(plan, poison=True, order=order)(memory.arrays), wanted)
    memory.clear()
    assert_same(tracegraph.jit(function, device="host")(*memory.arrays), wanted)
