"""Loops and branches under vmap give, for each lane, what they give for it alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.cases.vmap import VMAP_CASES, VmapCase
from tests.helpers.batching import assert_same, looped
from tests.helpers.running import WAYS
from tracegraph import cond, jit, switch, tree, vmap

each_case = pytest.mark.parametrize("name", VMAP_CASES)


def wanted(case: VmapCase) -> Any:
    with np.errstate(all="ignore"):
        return looped(case.function, *case.arguments, axes=case.axes)


@each_case
def test_lanes_are_those_of_the_python_loop(name: str) -> None:
    case = VMAP_CASES[name]
    with tracegraph.time_limit(60):
        found = vmap(case.function, case.axes)(*case.arguments)
    assert_same(found, wanted(case))


@each_case
@pytest.mark.parametrize("way", WAYS)
def test_lanes_are_the_same_in_all_ways_of_running(name: str, way: str) -> None:
    case = VMAP_CASES[name]
    with tracegraph.time_limit(60):
        found = WAYS[way](vmap(case.function, case.axes), *case.arguments)
    assert_same(tree.map(np.asarray, found), wanted(case))


@each_case
def test_nested_lanes(name: str) -> None:
    """Twice the lanes in two orders, as lanes of lanes, with results along the last axis."""
    case = VMAP_CASES[name]

    def stacked(x: Any) -> Any:
        return tree.map(lambda leaf: np.stack([leaf, leaf[::-1]]), x)

    given = [
        x if axis is None else stacked(x) for x, axis in zip(case.arguments, case.axes, strict=True)
    ]
    twice = vmap(vmap(case.function, case.axes), case.axes, out_axes=-1)
    with tracegraph.time_limit(60):
        found = tracegraph.jit(twice, device="host")(*given)
    alone = wanted(case)
    both = tree.map(lambda leaf: np.stack([leaf, leaf[::-1]], axis=-1), alone)
    assert_same(tree.map(np.asarray, found), both)


@each_case
def test_no_lanes(name: str) -> None:
    case = VMAP_CASES[name]
    none = [
        x if axis is None else tree.map(lambda leaf: leaf[:0], x)
        for x, axis in zip(case.arguments, case.axes, strict=True)
    ]
    one = wanted(case)
    for run in (vmap(case.function, case.axes), tracegraph.jit(vmap(case.function, case.axes))):
        found = run(*none)
        for got, like in zip(tree.leaves(found), tree.leaves(one), strict=True):
            assert (np.asarray(got).dtype, np.shape(got)) == (like.dtype, (0, *like.shape[1:]))


def test_what_all_branches_return_as_it_came_in_is_shared() -> None:
    flags, x = np.array([True, False, True]), np.arange(2.0)

    def chosen(flag: Any, x: Any) -> Any:
        return cond(flag, lambda x: (x, x * 2, 1.5), lambda x: (x, x * 3, 1.5), x)

    def switched(i: Any, x: Any) -> Any:
        return switch(i, [lambda x: (x, x + 1), lambda x: (x, x - 1), lambda x: (x, x)], x)

    def nested(flag: Any, x: Any) -> Any:
        return cond(flag, lambda x: cond(flag, lambda x: x, lambda x: x, x), lambda x: x, x)

    for run in (lambda f: f, lambda f: jit(f, device="host")):
        shared, own, number = run(vmap(chosen, (0, None), (None, 0, None)))(flags, x)
        np.testing.assert_array_equal(np.asarray(shared), x)
        np.testing.assert_array_equal(np.asarray(own), np.outer([2, 3, 2], x))
        assert number == 1.5
        shared, own = run(vmap(switched, (0, None), (None, 0)))(np.array([0, 1, 2]), x)
        np.testing.assert_array_equal(np.asarray(shared), x)
        np.testing.assert_array_equal(np.asarray(own), [x + 1, x - 1, x])
        np.testing.assert_array_equal(np.asarray(run(vmap(nested, (0, None), None))(flags, x)), x)
