"""Programs with kernels of users on the CPU: our kernels as C++, users' by their references.

In-place outputs, donated arguments, random orders of nodes, and bodies without updates.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pytest

from lowering.legalization.legalize import legalize
from lowering.plan.custom_kernel import CustomKernelNode
from lowering.plan.nodes import body_graphs, walk
from lowering.plan.target.features import Features
from tests.cases.custom_kernels import PROGRAMS, Program, each_program
from tests.emulation.emulator import COMPILER
from tests.emulation.plan_emulator import EmulatedPlans
from tracegraph import tree

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")

WAYS: dict[str, dict[str, Any]] = {
    "as they are": {},
    "over donated arguments": {"donate": True},
    "without updates in bodies": {
        "planned": lambda stage: legalize(stage.lower().plan, Features(body_updates=False)),
        "donate": True,
    },
}


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], EmulatedPlans]:
    programs = {str(p): (p.function, p.arguments) for p in PROGRAMS}
    return cache(
        lambda way: EmulatedPlans(programs, tmp_path_factory.mktemp("kernels"), **WAYS[way])
    )


@pytest.mark.parametrize("way", WAYS)
@each_program
def test_results(program: Program, way: str, plans: Callable[[str], EmulatedPlans]) -> None:
    expected = tree.leaves(program.function(*program.arguments))
    for seed in range(3):
        arguments = [np.copy(each) for each in program.arguments]
        found = plans(way).run(str(program), *arguments, order=Random(seed))
        for a, b in zip(expected, tree.leaves(found), strict=True):
            np.testing.assert_array_equal(b, a)


def test_kernels_in_bodies_have_fixed_addresses_there(
    plans: Callable[[str], EmulatedPlans],
) -> None:
    spaces = set()
    for plan in plans("without updates in bodies")._plans.values():
        bodies = [body for node in plan.graph.nodes for body in body_graphs(node)]
        custom = [n for body in bodies for n in walk(body) if isinstance(n, CustomKernelNode)]
        spaces |= {buffer.space for node in custom for buffer in node.accessed_buffers}
    assert spaces == {"scratch"}
