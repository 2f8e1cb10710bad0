"""What is stored on the way to results, and what is computed again where it is used."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

import tracegraph
from lowering.backends.cuda import TARGET
from lowering.plan.nests.analysis import nest_size
from lowering.planning import materialize
from lowering.planning.materialize import choose_materialized
from tests.helpers.compiled import host_plan_of, plan_of
from tests.helpers.plans import kinds, nests_of, vector
from tracegraph import ArrayType

CUDA = TARGET.costs
F32 = np.float32
F64 = np.float64


def materialized(region, sinks, costs):
    return choose_materialized(region, sinks, costs).materialized


@pytest.mark.parametrize("rounds", [1, 10, 40, 200])
def test_a_map_of_one_space_is_one_kernel_however_its_values_are_shared(rounds, monkeypatch):
    def step(x, y, scale):
        y = y[::-1]
        for _ in range(rounds):
            x, y = np.sin(x) * y, np.clip(x - y * scale, -1, 1)
        return x, y, x < y

    arguments = (vector(), vector(), ArrayType(F64, ()))
    together = host_plan_of(step, *arguments)
    monkeypatch.setattr(materialize, "MAX_SINGLE_KERNEL", 0)
    step_by_step = host_plan_of(step, *arguments)
    kernels = [[n.kernel.nests for n in p.graph.nodes] for p in (together, step_by_step)]
    sizes = [[list(map(nest_size, nests)) for nests in each] for each in kernels]
    assert sizes[0] == sizes[1]
    assert together.arena_bytes == step_by_step.arena_bytes
    if rounds < 200:
        assert len(together.graph.nodes) == 1
        assert together.arena_bytes == 0


def test_what_a_map_of_one_space_shares_is_not_stored_to_be_forwarded():
    def step(x, y):
        shared = x * y + 1.0
        return shared - x, shared * y, shared > 0

    region = tracegraph.jit(step).trace(vector(), vector()).optimized.body
    assert materialized(region, 3, CUDA) == set()
    condition = {region.results[2]}
    assert materialized(region, 2, CUDA) == condition, "a condition is read by a signal"
    deep = tracegraph.jit(lambda x: reduce(np.multiply, [x] * 150)).trace(vector()).optimized.body
    assert len(materialized(deep, 1, CUDA)) == 2, "kernels are built by recursion"


@pytest.mark.parametrize(
    ("arrays", "run", "picked", "stores"),
    [
        (1, 1, 1 << 22, False),  # a pass more saves no access
        (2, 1, 1 << 22, True),
        (2, 1, 1 << 20, False),
        (3, 1, 1 << 20, True),
        (2, 8, 1 << 22, False),  # rows of 8: as many bytes in a fourth of the accesses
        (3, 64, 1 << 22, False),
    ],
)
def test_a_gather_of_what_many_arrays_make_reads_it_from_memory(arrays, run, picked, stores):
    """On CUDA the first are as 42 to 52, 83 to 56, 29 to 32 and 47 to 36 µs, computed there and
    stored; rows 25 to 31 and 22 to 35.
    """
    n = 1 << 22

    def gathered(index, *factors):
        return reduce(np.multiply, factors, 2.0)[index]

    rows = ArrayType(F32, (n,) if run == 1 else (n // run, run))
    index = ArrayType(np.int32, (picked // run,))
    plan = plan_of(gathered, index, *[rows] * arrays, device="cuda")
    assert kinds(plan) == {"KernelNode": 1 + stores}
    assert bool(plan.arena_bytes) == stores


def _apart(x, p):
    shared = np.sin(x)
    return shared + 1, *[p[k:] for k in range(12)], shared * 2


def _many_results(x, p):
    for _ in range(15):
        x = np.sin(x) * x + np.cos(x)
    return [x] * 500


def _turned(x, p):
    for k in range(24):
        view = x.reshape(2, 2, 2).transpose(2, 0, 1).reshape(4, 2).T.reshape(8)
        x = np.sin(x) + p[k : k + 8][::-1].reshape(4, 2).T.reshape(8) * view
    return x, x * 2


def _with_other_parameters(x, p):
    x = np.sin(x) * x
    return x + 1, p, x * 2


@pytest.mark.parametrize("function", [_apart, _many_results, _turned, _with_other_parameters])
def test_what_would_not_be_one_kernel_repeats_no_work(function, monkeypatch):
    def costs():
        plan = host_plan_of(function, vector(), vector(70_000))
        nests = nests_of(plan.graph)
        return len(plan.graph.nodes), sum(map(nest_size, nests)), plan.arena_bytes

    found = costs()
    monkeypatch.setattr(materialize, "MAX_SINGLE_KERNEL", 0)
    assert found == costs()


def test_views_of_views_are_no_deeper_than_what_is_computed():
    def deep(x):
        for k in range(76):
            x = x.reshape(8, -1)[::-1] if k % 2 else x.T
        for _ in range(60):
            x = np.sin(x)
        return x

    region = tracegraph.jit(deep).trace(ArrayType(F64, (8, 12))).optimized.body
    assert not choose_materialized(region, 1, CUDA).is_single_kernel
    host_plan_of(deep, ArrayType(F64, (8, 12)))
