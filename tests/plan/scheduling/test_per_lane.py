"""Loops with a thread for each lane: which are, what keeps others from it, and their results."""

from __future__ import annotations

import numpy as np
import pytest

import tracegraph
from lowering.plan.nodes import walk
from lowering.plan.persistent_kernel import PersistentKernelNode
from lowering.plan.plan import Plan
from lowering.plan.target.overrides import Choices
from tests.helpers.compiled import nodes_planned_for
from tests.helpers.forced import on_host
from tests.helpers.running import eager
from tests.programs.lanes import PROGRAMS
from tracegraph import ArrayType

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
    found = on_host(PER_LANE)(function, *arguments)
    for new, old in zip(
        tracegraph.tree.leaves(found),
        tracegraph.tree.leaves(eager(function, *arguments)),
        strict=True,
    ):
        np.testing.assert_allclose(np.asarray(new), np.asarray(old), 1e-12)
