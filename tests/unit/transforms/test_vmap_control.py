"""Loops and branches under vmap give, for each lane, what they give for it alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from batching import assert_same, looped
from running import WAYS
from vmap_cases import VMAP_CASES, VmapCase

import tracegraph
from tracegraph import tree, vmap

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
