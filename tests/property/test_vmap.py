"""Random programs, batched, give for each lane what they give for it alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracegraph
from tests.helpers.batching import assert_same, lanes_of, looped
from tests.helpers.running import WAYS, eager
from tests.programs.printing import printed
from tracegraph import tree, vmap
from tracegraph.ir import interpret
from tracegraph.ir.verify import verify
from tracegraph.passes import with_dead_lanes_isolated
from tracegraph.testing import RandomProgram, programs


@st.composite
def batched_programs(draw: st.DrawFn, **options: Any) -> tuple[RandomProgram, tuple[Any, ...]]:
    """A random program, and the axes of its arguments: at least one has lanes."""
    program = draw(programs(**options))
    count = len(program.arguments)
    axes = draw(st.lists(st.sampled_from([0, None]), min_size=count, max_size=count))
    first = draw(st.integers(0, count - 1))
    return program, tuple(0 if i == first else axis for i, axis in enumerate(axes))


def with_lanes(program: RandomProgram, axes: tuple[Any, ...]) -> list[Any]:
    pairs = zip(program.arguments, axes, strict=True)
    return [x if axis is None else lanes_of(x) for x, axis in pairs]


def wanted(program: RandomProgram, axes: tuple[Any, ...], arguments: list[Any]) -> Any:
    return looped(lambda *args: eager(program.function, *args), *arguments, axes=axes)


def run_now(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


def isolated(function: Callable[..., Any], *arguments: Any) -> Any:
    """As it is before derivatives are taken."""
    traced = tracegraph.jit(function, device="host").trace(*arguments)
    program = verify(with_dead_lanes_isolated(traced.program))
    return tree.unflatten(traced.out_structure, interpret.run(program, *arguments))


RUNS = {"now": run_now, "isolated": isolated, **WAYS}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@given(drawn=batched_programs())
def test_lanes_are_those_of_the_python_loop(run: Any, drawn: Any) -> None:
    program, axes = drawn
    arguments = with_lanes(program, axes)
    found = run(vmap(program.function, axes), *arguments)
    assert_same(tree.map(np.asarray, found), wanted(program, axes, arguments))


@given(drawn=batched_programs(max_steps=4))
def test_lanes_of_lanes(drawn: Any) -> None:
    program, axes = drawn
    arguments = with_lanes(program, axes)
    twice = [
        x if axis is None else np.stack([x, x[::-1]], axis=-1)
        for x, axis in zip(arguments, axes, strict=True)
    ]
    outer = tuple(None if axis is None else -1 for axis in axes)
    function = tracegraph.jit(vmap(vmap(program.function, axes), outer), device="host")
    alone = wanted(program, axes, arguments)
    both = tree.map(lambda leaf: np.stack([leaf, leaf[::-1]]), alone)
    assert_same(tree.map(np.asarray, function(*twice)), both)


@given(drawn=batched_programs(max_steps=4, effects=True))
def test_each_lane_prints_what_it_prints_alone(drawn: Any) -> None:
    program, axes = drawn
    arguments = with_lanes(program, axes)
    alone = tracegraph.jit(program.function, device="host")
    expected = printed(partial(looped, alone, axes=axes), *arguments)
    found = printed(
        run_now, tracegraph.jit(vmap(program.function, axes), device="host"), *arguments
    )
    assert sorted(found.splitlines()) == sorted(expected.splitlines())
