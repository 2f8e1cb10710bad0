"""TRACEGRAPH_HOST=plain: the same results without any of the tuning."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import tracegraph
from lowering.host import passes
from lowering.host.choice import VARIABLE
from lowering.host.executable import HostExecutable
from lowering.host.passes import Passes, chosen_passes
from lowering.host.source.call_emitter import NestWriter
from lowering.host.tuning import passes as tuning
from lowering.host.tuning.expressions import remainders
from lowering.host.tuning.groups import access_orders
from lowering.host.tuning.instructions import (
    layout_propagation,
    reversed_chains,
    reversed_views,
    short_rows,
)
from tests.corpus import CASES
from tests.helpers.agreement import assert_agrees
from tests.helpers.running import eager, lowered, poisoned
from tracegraph import tree
from tracegraph.testing import RandomProgram, assert_traced_equals_eager, programs


@pytest.fixture
def any_size(monkeypatch):
    """What tuning does to large arrays alone, done to small ones as well."""
    for module, constant, least in (
        (short_rows, "ROWS", 1),
        (short_rows, "FOLDED_ROWS", 1),
        (short_rows, "LANES", 1),
        (short_rows, "MANY_FOLDS", 1),
        (reversed_views, "LEAST_ELEMENTS", 2),
        (reversed_chains, "LEAST_ELEMENTS", 2),
        (layout_propagation, "LEAST_ELEMENTS", 2),
        (access_orders, "FEWEST_ROWS", 2),
        (access_orders, "FEWEST_ELEMENTS", 1),
        (remainders, "QUOTIENT_SIZE", 1),
    ):
        monkeypatch.setattr(module, constant, least)


@pytest.mark.parametrize("name", CASES)
def test_the_corpus_means_the_same_plain_and_tuned(name, any_size, monkeypatch):
    """One plan, run in both ways; the public way with the limits as they are has other tests."""
    case = CASES[name]
    stage = lowered(case.function, *case.arguments)
    wanted = tree.leaves(eager(case.function, *case.arguments))
    for value, listed in (("", tuning.PASSES), ("plain", None)):
        monkeypatch.setenv(VARIABLE, value)
        monkeypatch.setattr(tuning, "PASSES", listed)  # None would fail where it is read
        executable = HostExecutable(stage.plan, poison=True)
        found = executable(tree.leaves(case.arguments))
        for got, expected in zip(found, wanted, strict=True):
            assert_agrees(np.asarray(got), np.asarray(expected), case.ulps)


@settings(max_examples=15)
@given(program=programs())
def test_random_programs_mean_the_same_without_tuning(program: RandomProgram) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, "plain")
        patch.setattr(tuning, "PASSES", None)
        assert_traced_equals_eager(
            program.function, *program.arguments, ulps=0, ways={"untuned": poisoned}
        )


def test_only_the_list_of_passes_is_imported_from_tuning():
    package = Path(passes.__file__).parent
    importing = [
        (path.name, line.strip())
        for path in package.glob("*.py")
        for line in path.read_text().splitlines()
        if "import" in line and "host.tuning" in line
    ]
    assert importing == [("passes.py", "from lowering.host.tuning.passes import PASSES")]


def test_another_value_is_refused_at_the_first_use(monkeypatch):
    monkeypatch.setenv(VARIABLE, "fast")
    f = tracegraph.jit(lambda x: x + 1, device="host")
    with pytest.raises(ValueError, match=r"TRACEGRAPH_HOST is 'fast'; it takes 'plain'"):
        f(np.ones(3))
    monkeypatch.setenv(VARIABLE, "")
    np.testing.assert_array_equal(np.asarray(f(np.ones(3))), 2 * np.ones(3))


def test_passes_join_in_by_kind():
    assert Passes().writer is NestWriter
    monitored = []

    def watch(program, overlaps):
        monitored.append(len(program.instructions))
        return program

    watching = tuning.TuningPass("watch", "counts instructions", "instructions", watch)
    plan = tracegraph.jit(lambda x: x * 2 + 1, device="host").lower(np.ones(3)).plan
    for node in plan.graph.nodes:
        for program in Passes([watching]).evaluated(node.kernel, plan, lambda a, b: a is b):
            Passes([watching]).rewritten(program, lambda a, b: a is b)
    assert monitored == [3]  # multiply, add, store


def test_every_pass_says_what_it_does():
    names = [each.name for each in tuning.PASSES]
    assert len(set(names)) == len(names)
    assert all(each.effect for each in tuning.PASSES)
    assert chosen_passes().writer is not NestWriter
