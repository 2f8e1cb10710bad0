"""Loops with a thread for each lane: which are, what keeps others from it, and their results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.codegen import unit_source
from lowering.plan.nodes import walk
from lowering.plan.persistent_kernel import PersistentKernelNode
from lowering.plan.plan import Plan
from lowering.plan.reports.explain import explain
from lowering.plan.target.overrides import Choices, override
from lowering.scheduling.per_lane import scope_of
from tests.helpers.compiled import nodes_planned_for
from tests.helpers.forced import on_host
from tests.helpers.running import eager
from tests.programs.lanes import PROGRAMS
from tracegraph import ArrayType, debug, fori_loop, tree, while_loop
from tracegraph.errors import UnschedulableError

PER_LANE = Choices(loops="per_lane")


def lanes(plan: Plan) -> list[tuple[int, ...]]:
    """The lanes of each loop that has a thread for each."""
    nodes = [node for node in walk(plan.graph) if isinstance(node, PersistentKernelNode)]
    return [node.scope.lanes for node in nodes if node.scope.lanes]


def vector(n: int) -> ArrayType:
    return ArrayType("float64", (n,))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_have_lanes_and_give_what_numpy_gives(name: str) -> None:
    function, arguments = PROGRAMS[name]
    plan = nodes_planned_for(function, *arguments, choices={"loops": "per_lane"})
    assert len(lanes(plan)) == 1
    found = tree.leaves(on_host(PER_LANE)(function, *arguments))
    for new, old in zip(found, tree.leaves(eager(function, *arguments)), strict=True):
        np.testing.assert_allclose(np.asarray(new), np.asarray(old), 1e-12)


@pytest.mark.parametrize("n", [40, 1 << 20])
def test_it_is_chosen_for_few_and_many(n: int) -> None:
    roots, _ = PROGRAMS["newton"]
    assert lanes(nodes_planned_for(roots, vector(n))) == [(n,)]


def test_blocks_are_small_where_lanes_are_few() -> None:
    sizes = [scope_of((n,)).threads for n in (7, 4224, 4225, 1 << 20)]
    assert sizes == [32, 32, 64, 128]
    assert scope_of((3, 50)).blocks == 5


def test_vmap_of_vmap_has_lanes_of_both_axes() -> None:
    function, arguments = PROGRAMS["mandelbrot"]
    assert lanes(nodes_planned_for(function, *arguments)) == [(11, 13)]


def test_it_is_explained() -> None:
    function, arguments = PROGRAMS["walkers"]
    text = explain(nodes_planned_for(function, *arguments))
    assert "one kernel, a thread for each of 140 lanes" in text


def looped(step: Any, **options: Any) -> Any:
    return lambda x: fori_loop(0, 40, lambda i, x: step(x), x, schedule="per_lane", **options)


def printing(x: Any) -> Any:
    debug.print("{}", x[0])
    return x / 2


def pinned_while(x: Any) -> Any:
    return while_loop(lambda x: np.any(x > 1), lambda x: x / 2, x, schedule="per_lane")


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (looped(lambda x: np.roll(x, 1)), "64 lanes read or write what belongs to others"),
        (looped(lambda x: x - x.sum()), "values that 64 lanes share"),
        (looped(lambda x: x - x[0]), "64 lanes read or write what belongs to others"),
        (looped(printing), "a print inside"),
        (looped(lambda x: x + 1, progress=True), "its progress counts the steps of all lanes"),
        (pinned_while, "values that 64 lanes share"),
        (lambda x: looped(lambda s: s + 1)(x[0]), "one element, or no axis"),
    ],
)
def test_what_lanes_share_is_an_obstacle(function: Any, reason: str) -> None:
    with pytest.raises(UnschedulableError, match=reason):
        nodes_planned_for(function, vector(64))


def test_checks_are_an_obstacle() -> None:
    with tracegraph.check_indices(), pytest.raises(UnschedulableError, match="a check inside"):
        nodes_planned_for(looped(lambda x: x + x[np.sum(x).astype(int)]), vector(64))


def test_a_loop_that_ends_for_all_lanes_at_once_is_not_ended_by_one() -> None:
    """Its condition looks like that of lanes, but its steps change what has ended."""

    def run(x: Any) -> Any:
        return while_loop(lambda s: np.any(s[1]), lambda s: (s[0] - 1, s[0] > 3), (x, x > 3))

    assert lanes(nodes_planned_for(run, vector(64))) == []


def text_of(function: Any, *types: Any) -> str:
    with override(loops="per_lane"):
        unit = unit_source(nodes_planned_for(function, *types))
    (code,) = [code for node, code in unit.kernels.items() if node.kind == "persistent"]
    start = unit.source.index(f"{code.name}(")
    return unit.source[start : unit.source.find('\nextern "C"', start)]


def test_a_lane_is_kept_in_registers_and_waits_for_nobody() -> None:
    function, arguments = PROGRAMS["rotations"]
    text = text_of(function, *arguments)
    assert "__align__(16) double" in text
    assert all(word not in text for word in ("__syncthreads", "barrier", "shared"))


def test_arrays_at_places_that_depend_on_data_stay_in_memory() -> None:
    function, arguments = PROGRAMS["histories"]
    assert "[16];" not in text_of(function, *arguments)
