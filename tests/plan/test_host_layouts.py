"""Intermediate values of the host lie in memory as what they are made of."""

from __future__ import annotations

import numpy as np
import pytest

import tracegraph
from lowering.host import functions
from lowering.host.arena import Workspace
from lowering.host.nests import kernel_runs
from lowering.host.registers import Temporary, View, memory_order
from lowering.host.schedule import RUN_BYTES, schedule


def apart(one, other):
    return one is other


def runs_of(function, *arguments):
    plan = tracegraph.jit(function, device="host").lower(*arguments).plan
    return [run for node in plan.graph.nodes for run in kernel_runs(node.kernel, plan, apart)]


def centred(x):
    y = np.tanh(x)
    return y - np.mean(y, axis=0, keepdims=True)


def test_columns_are_worked_on_in_the_order_of_memory():
    (run,) = runs_of(centred, np.ones((512, 512), np.float32))
    large = [
        r
        for made in run.instructions
        for r in (made.output, *made.inputs)
        if isinstance(r, View | Temporary) and r.shape == (512, 512)
    ]
    assert len(large) > 2
    assert {memory_order(r) for r in large} == {(1, 0)}


def test_blocks_of_columns_have_runs_of_some_length():
    x = np.ones((512, 20_000), np.float32)
    (run,) = runs_of(centred, x)
    found = schedule(run, apart, Workspace())
    assert found.axis is not None
    assert found.length * x.itemsize >= RUN_BYTES


def test_what_is_vectorised_forwards_alone_reads_no_reversed_view():
    (run,) = runs_of(lambda x: np.sin(x[:, ::-1]) + x, np.ones((20, 30), np.float32))
    assert run.instructions[0].function is functions.store
    (sine,) = [made for made in run.instructions if made.function is np.sin]
    assert isinstance(sine.inputs[0], Temporary)


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (40, 1), (7, 9), (300, 200), (1100, 1300)])
def test_results_do_not_depend_on_the_layout(shape):
    x = np.random.default_rng(0).random(shape)

    def function(x):
        centred = x.T[::-1] - np.mean(x, axis=0)[::-1, None]
        return np.exp(centred), np.sum(centred * centred, axis=1), np.cumsum(centred, axis=0)

    for found, expected in zip(
        tracegraph.jit(function, device="host")(x), function(x), strict=True
    ):
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-9, atol=1e-9)
