"""Programs with kernels of users on the CPU: our kernels as C++, users' by their references.

In-place outputs, donated arguments, random orders of nodes, and bodies without updates.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from lowering.legalization.features import Features
from lowering.legalization.legalize import legalize
from lowering.plan.custom_kernel import CustomKernelNode
from lowering.plan.nodes import body_graphs, walk
from tests.cases.custom_kernels import PROGRAMS, Program, each_program
from tests.emulation.emulator import COMPILER
from tests.emulation.plan_emulator import EmulatedPlans
from tracegraph import tree

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")

WITHOUT_UPDATES = Features(body_updates=False)


def emulated(factory: Any, name: str, **options: Any) -> EmulatedPlans:
    programs = {str(p): (p.function, p.arguments) for p in PROGRAMS}
    return EmulatedPlans(programs, factory.mktemp(name), **options)


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> EmulatedPlans:
    return emulated(tmp_path_factory, "plain")


@pytest.fixture(scope="module")
def donating(tmp_path_factory: pytest.TempPathFactory) -> EmulatedPlans:
    return emulated(tmp_path_factory, "donating", donate=True)


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> EmulatedPlans:
    return emulated(
        tmp_path_factory,
        "staged",
        planned=lambda stage: legalize(stage.lower().plan, WITHOUT_UPDATES),
        donate=True,
    )


def assert_agrees(program: Program, plans: EmulatedPlans) -> None:
    expected = tree.leaves(program.function(*program.arguments))
    for seed in range(3):
        arguments = [np.copy(each) for each in program.arguments]
        found = plans.run(str(program), *arguments, order=Random(seed))
        for a, b in zip(expected, tree.leaves(found), strict=True):
            np.testing.assert_array_equal(b, a)


@each_program
def test_results(program: Program, plans: EmulatedPlans) -> None:
    assert_agrees(program, plans)


@each_program
def test_results_over_donated_arguments(program: Program, donating: EmulatedPlans) -> None:
    assert_agrees(program, donating)


@each_program
def test_results_without_updates_in_bodies(program: Program, staged: EmulatedPlans) -> None:
    assert_agrees(program, staged)


def test_kernels_in_bodies_have_fixed_addresses_there(staged: EmulatedPlans) -> None:
    spaces = set()
    for plan in staged._plans.values():
        bodies = [body for node in plan.graph.nodes for body in body_graphs(node)]
        custom = [n for body in bodies for n in walk(body) if isinstance(n, CustomKernelNode)]
        spaces |= {buffer.space for node in custom for buffer in node.accessed_buffers}
    assert spaces == {"scratch"}
