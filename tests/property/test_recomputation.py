"""Values that are computed where they are used are those that would be stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracegraph
from lowering.backends.cuda import TARGET
from lowering.host.executable import HostExecutable
from lowering.lower import lower
from lowering.plan.target.target import Target
from tests.corpus import CASES
from tests.helpers.forced import BRANCHING
from tests.helpers.running import assert_case_agrees
from tracegraph import tree
from tracegraph.testing import RandomProgram, assert_traced_equals_eager, programs
from tracegraph.testing.ways import LOWERINGS, using

SLOW_MEMORY = replace(TARGET, costs=replace(TARGET.costs, megabyte=1e9, cached=0))
"""Whatever can be computed again is."""


def on_host(target: Target) -> Callable[..., Any]:
    """Runs the Plan for a target on the host, its nodes in any order that edges allow."""

    def run(function: Any, *arguments: Any) -> Any:
        stage = tracegraph.jit(function, device="host").lower(*arguments)
        plan = lower(stage.traced.optimized, target)
        found = HostExecutable(plan, poison=True, order=Random(0))(tree.leaves(arguments))
        return tree.unflatten(stage.traced.out_structure, found)

    return run


@pytest.mark.parametrize("name", list(CASES)[::2])
def test_the_corpus_agrees(name: str) -> None:
    assert_case_agrees(CASES[name], on_host(SLOW_MEMORY))


WAYS = ("conditional", "predicated", "unrolled")


@pytest.mark.parametrize(("name", "way"), [*zip(BRANCHING, cycle(WAYS), strict=False)])
def test_so_it_does_with_loops_and_branches_of_any_kind(name: str, way: str) -> None:
    run = on_host(SLOW_MEMORY)

    def chosen(function: Any, *arguments: Any) -> Any:
        with using(LOWERINGS[way].chosen):
            return run(function, *arguments)

    assert_case_agrees(CASES[name], chosen)


@given(program=programs())
def test_random_programs_give_the_same_results(program: RandomProgram) -> None:
    ways = {"recomputed": on_host(SLOW_MEMORY)}
    assert_traced_equals_eager(program.function, *program.arguments, ulps=0, ways=ways)


@st.composite
def maps_and_folds(draw: st.DrawFn) -> Callable[[Any, Any], Any]:
    """A program of maps over pairs or triples of elements, and folds of them over any axes."""
    steps = draw(
        st.lists(
            st.tuples(st.integers(0, 8), st.integers(0, 50), st.integers(0, 50)),
            min_size=3,
            max_size=12,
        )
    )

    def run(x: Any, y: Any) -> Any:
        values = [x[:, None, :] - y[None], x[:, None, :] * 2, np.broadcast_to(y, (4, 5, 3))]
        folded = []
        for kind, i, j in steps:
            a, b = values[i % len(values)], values[j % len(values)]
            axis = j % a.ndim if a.ndim else None
            if kind <= 2 and a.ndim:
                fold = (np.sum, np.max, np.min)[kind]
                folded.append(fold(a, axis=axis) % 97)
                values.append(folded[-1])
            elif kind == 3:
                values.append(np.sum(a % 11, axis=axis, keepdims=True) % 5 + a)
            elif kind == 4 and a.ndim > 1:
                values.append(np.swapaxes(a, 0, -1) + 1)
            elif kind == 5:
                folded.append(np.any(a > b) if a.shape == b.shape else np.all(a > 0, axis=axis))
            else:
                values.append((a * b - a if a.shape == b.shape else a * 3 - 1) % 101)
        return values[-1], values[len(values) // 2], *folded

    return run


@pytest.mark.usefixtures("each_host")
@given(function=maps_and_folds(), seed=st.integers(0, 99), integers=st.booleans())
def test_maps_and_folds_are_exact_however_they_are_put_together(
    function: Callable[[Any, Any], Any], seed: int, integers: bool
) -> None:
    x, y = np.random.default_rng(seed).integers(-9, 10, (2, 5, 3))
    x = x[:4]
    if not integers:
        x, y = x.astype(np.float64), y.astype(np.float64)
    ways = {"stored": on_host(TARGET), "recomputed": on_host(SLOW_MEMORY)}
    assert_traced_equals_eager(function, x, y, ulps=0, ways=ways)
