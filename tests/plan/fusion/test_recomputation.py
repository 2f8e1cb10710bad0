"""What other kernels load is stored, or computed where it is used, whichever takes less time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.backends.cuda import TARGET
from lowering.draft.context import Context
from lowering.draft.draft_nodes import Block, DraftKernel
from lowering.fusion.recomputation import recompute
from lowering.lower import lower
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import MapNest, ReduceNest, RowNest, Store
from lowering.plan.target.overrides import override
from tests.helpers.compiled import host_plan_of, plan_of
from tests.helpers.plans import loop_of, nests_of
from tracegraph import ArrayType, fori_loop
from tracegraph.ir.op import get
from tracegraph.ir.scalar import Axis, const
from tracegraph.ir.scalar_values import Load, apply

F32 = np.float32
F64 = np.float64


def acceleration(x: Any, mass: Any) -> Any:
    between = x[None] - x[:, None]
    distance = np.sum(between * between, -1) + 0.01
    return np.sum((mass[None] * distance**-1.5)[..., None] * between, axis=1)


@pytest.mark.parametrize("dtype", [F64, F32])
@pytest.mark.parametrize("n", [128, 4096])
def test_forces_of_all_pairs_are_one_nest_without_arrays_of_pairs(n, dtype):
    plan = plan_of(acceleration, ArrayType(dtype, (n, 3)), ArrayType(dtype, (n,)))
    (nest,) = nests_of(plan.graph)
    assert isinstance(nest, ReduceNest)
    assert (nest.space, nest.loop) == ((n, 3), (n,))
    assert plan.arena_bytes == 0


def test_on_a_cpu_arrays_of_pairs_stay_in_its_cache_unless_they_are_large():
    small, large = (
        host_plan_of(acceleration, ArrayType(F64, (n, 3)), ArrayType(F64, (n,))) for n in (64, 2048)
    )
    assert small.arena_bytes >= 64 * 64 * 3 * 8
    assert large.arena_bytes <= 2048 * 2048 * 8


def kinetic_energy(v: Any, mass: Any) -> Any:
    return np.sum(mass * np.sum(v * v, axis=1))


def test_a_fold_of_short_folds_is_one_fold():
    plan = plan_of(kinetic_energy, ArrayType(F64, (4096, 3)), ArrayType(F64, (4096,)))
    (nest,) = nests_of(plan.graph)
    assert isinstance(nest, ReduceNest)
    assert nest.loop == (4096,)


@pytest.mark.parametrize(("extent", "nests"), [(8, 1), (64, 2)])
def test_only_short_folds_are_written_out(extent, nests):
    plan = plan_of(kinetic_energy, ArrayType(F64, (8192, extent)), ArrayType(F64, (8192,)))
    assert len(nests_of(plan.graph)) == nests


def test_sums_of_halves_are_rounded_once_and_so_not_written_out():
    plan = plan_of(kinetic_energy, *[ArrayType(np.float16, s) for s in ((1 << 15, 3), (1 << 15,))])
    assert len(nests_of(plan.graph)) == 2


def test_a_value_that_folds_of_rows_and_of_columns_read_is_computed_in_both():
    def both(x: Any) -> Any:
        z = x * 2 - 1
        return np.max(z, axis=1), np.max(z, axis=0)

    plan = plan_of(both, ArrayType(F64, (2000, 2000)))
    assert all(isinstance(nest, ReduceNest) for nest in nests_of(plan.graph))
    assert plan.arena_bytes == 0


def test_a_value_of_two_arrays_is_stored_for_a_second_fold_since_it_is_one():
    def both(x: Any, y: Any) -> Any:
        z = x * 2 - y
        return np.max(z, axis=1), np.max(z, axis=0)

    plan = plan_of(both, *[ArrayType(F64, (2000, 2000))] * 2)
    assert plan.arena_bytes == 2000 * 2000 * 8


def sinkhorn(x: Any, y: Any) -> Any:
    cost = np.sum((x[:, None] - y[None]) ** 2, -1)

    def soft(z: Any, axis: int) -> Any:
        most = np.max(z, axis, keepdims=True)
        return (most + np.log(np.sum(np.exp(z - most), axis, keepdims=True))).squeeze(axis)

    def step(_: Any, v: Any) -> Any:
        return soft(soft(v[None] - cost, 1)[:, None] - cost, 0)

    return fori_loop(0, 30, step, np.zeros_like(y[:, 0]))


def test_what_a_loop_reads_is_computed_in_its_body():
    plan = plan_of(sinkhorn, *[ArrayType(F64, (2000, 2))] * 2, choices={"loops": "conditional"})
    rows = nests_of(loop_of(plan).body)
    assert sum(isinstance(nest, RowNest) for nest in rows) == len(rows) - 1 == 2
    assert plan.arena_bytes < 1 << 20


def test_a_loop_that_computes_what_it_read_gives_the_same():
    x, y = np.random.default_rng(2).normal(size=(2, 400, 2))
    with override(loops="conditional"):
        stage = tracegraph.jit(sinkhorn, device="cuda").lower(x, y)
        (found,) = lowered_and_run(stage, TARGET, x, y)
    np.testing.assert_allclose(found, sinkhorn(x, y), rtol=1e-12)
    assert stage.plan.arena_bytes < 400 * 400 * 8


def test_what_a_loop_changes_is_read_before():
    def run(x: Any) -> Any:
        far = x[:, None] * 2 - x[None]

        def step(_: Any, x: Any) -> Any:
            return x + np.max(far * 0.25, axis=1) + np.min(far, axis=0)

        return fori_loop(0, 4, step, x), np.sum(far, axis=1)

    x = np.random.default_rng(3).normal(size=120)
    stage = tracegraph.jit(run, device="cuda", donate_argnums=0).lower(x)
    found = lowered_and_run(stage, TARGET, x.copy())
    for one, other in zip(found, run(x), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_what_takes_longer_than_its_bytes_is_stored():
    def spread(x: Any) -> Any:
        y = x
        for _ in range(12):
            y = np.sin(np.exp(y) + 1)
        return np.max(y[None, :] * y[:, None] + y[::-1, None], axis=1)

    plan = plan_of(spread, ArrayType(F64, (4096,)))
    stored, folded = nests_of(plan.graph)
    assert isinstance(stored, MapNest)
    assert isinstance(folded, ReduceNest)


def test_what_is_computed_from_an_array_that_is_overwritten_is_stored_before():
    def update(x: Any, y: Any) -> Any:
        x = x.copy()
        twice = x * 2 - y
        x[:, 1:3] = twice[:, 1:3].sum(axis=0)
        return np.max(twice - x, axis=1), np.min(twice.T * x, axis=0), x

    shape = (300, 300)
    x, y = np.random.default_rng(0).normal(size=(2, *shape))
    stage = tracegraph.jit(update, device="cuda").lower(x, y)
    found = lowered_and_run(stage, TARGET, x, y)
    for one, other in zip(found, update(x, y), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)


def lowered_and_run(stage: Any, target: Any, *arguments: Any) -> Any:
    from lowering.host.executable import HostExecutable

    return HostExecutable(lower(stage.traced.optimized, target), poison=True)(list(arguments))


def test_a_carry_that_a_step_overwrites_is_read_before():
    def body(i: Any, x: Any) -> Any:
        between = x[None] - x[:, None]
        return x + np.sum(between / (np.sum(between * between, -1) + 1.0)[..., None], axis=1)

    def run(x: Any) -> Any:
        return fori_loop(0, 5, body, x)

    x = np.random.default_rng(1).normal(size=(90, 3))
    stage = tracegraph.jit(run, device="cuda").lower(x)
    (found,) = lowered_and_run(stage, TARGET, x)
    np.testing.assert_allclose(found, run(x), rtol=1e-12)
    assert stage.plan.arena_bytes < 90 * 90 * 8


def test_memory_without_a_price_keeps_all_that_is_stored():
    free = replace(TARGET, costs=replace(TARGET.costs, megabyte=0.0, kernel=0.0))
    stage = tracegraph.jit(acceleration, device="cuda").lower(
        ArrayType(F64, (256, 3)), ArrayType(F64, (256,))
    )
    plan = lower(stage.traced.optimized, free)
    assert any(isinstance(nest, RowNest) for nest in nests_of(plan.graph))
    assert plan.arena_bytes > 0


@pytest.mark.parametrize("read_before", [False, True])
def test_what_is_read_before_it_is_stored_is_of_the_step_before(read_before):
    n = 1 << 20
    a, b, before, after = (Buffer("scratch", k, ArrayType(F64, (n,))) for k in range(4))
    i = Axis.make(0, n)

    def reversed_copy(target: Buffer) -> DraftKernel:
        return DraftKernel([MapNest((n,), (Store(target, (i,), Load.make(b, (n - 1 - i,))),))])

    f64 = np.dtype(F64)
    double = apply(get("multiply"), (Load.make(a, (i,)), const(2.0, f64)), f64, {})
    writer = DraftKernel([MapNest((n,), (Store(b, (i,), double),))])
    nodes = [*([reversed_copy(before)] if read_before else []), writer, reversed_copy(after)]
    block = Block(nodes, {b}, (before, after))
    changed = recompute(block, Context(TARGET, {}))
    assert list(changed) == ([] if read_before else [block])
    assert len(block.nodes) == (3 if read_before else 1)
