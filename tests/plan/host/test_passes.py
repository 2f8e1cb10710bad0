"""TRACEGRAPH_HOST=plain: the same results without any of the tuning."""

from __future__ import annotations

import numpy as np
import pytest
from corpus import CASES
from hypothesis import given
from processes import end_of
from running import assert_case_agrees, poisoned

import tracegraph
from lowering.host.call_emitter import NestWriter
from lowering.host.passes import VARIABLE, Passes, chosen_passes
from lowering.host.tuning import passes as tuning
from tracegraph.testing import RandomProgram, assert_traced_equals_eager, programs

WITHOUT_TUNING = """
import sys
import numpy as np
import tracegraph

def function(x):
    return np.where(np.roll(x, 1, 0) > 0, x.T @ x, np.maximum(x, 0.0))

f = tracegraph.jit(function, device="host")
f(np.linspace(-1, 1, 10_000).reshape(100, 100))
print([name for name in sys.modules if name.startswith("lowering.host.tuning")])
"""


@pytest.fixture
def plain(monkeypatch):
    monkeypatch.setenv(VARIABLE, "plain")
    monkeypatch.setattr(tuning, "PASSES", None)  # would fail where it is read


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("name", CASES)
def test_the_corpus_means_the_same_without_tuning(name):
    assert_case_agrees(CASES[name], poisoned)


@given(program=programs())
def test_random_programs_mean_the_same_without_tuning(program: RandomProgram) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, "plain")
        patch.setattr(tuning, "PASSES", None)
        assert_traced_equals_eager(program.function, *program.arguments, run=poisoned)


def test_without_tuning_none_of_its_modules_is_loaded():
    code, output, errors = end_of(WITHOUT_TUNING, **{VARIABLE: "plain"})
    assert (code, output.strip()) == (0, "[]"), errors


def test_another_value_is_refused_at_the_first_use(monkeypatch):
    monkeypatch.setenv(VARIABLE, "fast")
    f = tracegraph.jit(lambda x: x + 1, device="host")
    with pytest.raises(ValueError, match=r"TRACEGRAPH_HOST is 'fast'; it takes 'plain'"):
        f(np.ones(3))
    monkeypatch.setenv(VARIABLE, "")
    np.testing.assert_array_equal(np.asarray(f(np.ones(3))), 2 * np.ones(3))


def test_passes_join_their_stages():
    assert Passes().writer is NestWriter
    monitored = []

    def watch(program, overlaps):
        monitored.append(len(program.instructions))
        return program

    watching = tuning.Pass("watch", "counts instructions", "instructions", watch)
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
