"""Which maps are in one kernel with the collective that they need, and how their points divide."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracegraph
from benchmarks.sharded.programs import ROWS
from benchmarks.sharded.vocabularies import tracegraph_on_all
from lowering.plan.nests.kernel import MapNest
from lowering.plan.nodes import KernelNode, launched
from lowering.plan.persistent_kernel import PersistentKernelNode
from lowering.plan.reports.races import races
from tracegraph import ArrayType, Mesh, shard
from tracegraph import PartitionSpec as P
from tracegraph.ir.scalar import affine

PAIR = Mesh(2, "x", device="cuda")


def lowered(fun: Any, *args: Any) -> Any:
    return tracegraph.jit(shard(fun, mesh=PAIR, in_specs=P("x"), out_specs=P("x"))).lower(*args)


def beside(plan: Any) -> list[PersistentKernelNode]:
    kernels = [n for n in launched(plan.graph) if isinstance(n, PersistentKernelNode)]
    return [kernel for kernel in kernels if kernel.scope.beside]


def joined(u: Any, width: int, axis: int) -> Any:
    """What a stencil needs: a block, with what neighbours have."""
    before, behind = tracegraph.halo(u, "x", width=width, axis=axis, boundary=0.0)
    return np.concatenate([before, u, behind], axis)


def points_of(nest: MapNest) -> list[int]:
    """The elements that a nest stores to, in order."""
    (store,) = nest.stores
    found = []
    for point in np.ndindex(nest.space):
        index = [_value(each, point) for each in store.indices]
        found.append(int(np.ravel_multi_index(index, store.buffer.type.shape)))
    return found


def _value(index: Any, point: Sequence[int]) -> int:
    known = affine(index)
    assert known is not None
    return known[1] + sum(factor * point[axis] for axis, factor in known[0].items())


@given(st.integers(1, 2), st.sampled_from([(24,), (24, 5), (3, 24)]), st.booleans())
@settings(max_examples=12, deadline=None)
def test_each_point_is_in_one_part(width: int, shape: tuple[int, ...], scaled: bool) -> None:
    axis = shape.index(24)
    shape = tuple([640 if n == 24 and axis == len(shape) - 1 else n for n in shape])

    def fun(u: Any) -> Any:
        u = 2 * u if scaled else u
        wide = joined(u, width, axis)
        first = (slice(None),) * axis
        n = u.shape[axis]
        return wide[(*first, slice(0, n))] + wide[(*first, slice(2 * width, None))] - u

    plan = lowered(fun, np.ones((2 * shape[0], *shape[1:]))).plan
    assert beside(plan)
    for kernel in beside(plan):
        division, node = kernel.divided, kernel.graph.nodes[1]
        assert division is not None
        assert isinstance(node, KernelNode)
        parts = [*division.ends, *division.inside]
        stored = [point for part in parts for point in points_of(part)]
        whole = [point for nest in node.kernel.nests for point in points_of(nest)]
        assert sorted(stored) == sorted(whole)
        assert sum(prod(part.space) for part in division.inside) >= 0.75 * len(whole)


def test_a_sum_is_needed_by_all_points() -> None:
    def fun(u: Any) -> Any:
        return tracegraph.fori_loop(0, 40, lambda i, u: u - 0.1 * tracegraph.psum(u, "x"), u)

    assert not beside(lowered(fun, np.ones((2000, 64))).plan)


def test_two_maps_that_each_wait_for_the_exchange_of_the_other() -> None:
    """One is in one kernel with its exchange; were both, these would wait for each other."""

    def fun(u: Any, v: Any) -> Any:
        u, v = 2 * u, 3 * v
        above, left = tracegraph.halo(u, "x"), tracegraph.halo(v, "y")
        wide, high = np.concatenate([above[0], u, above[1]]), np.concatenate([left[0], v, left[1]])
        of_u, of_v = np.sort(above[0].ravel())[3], np.cumsum(left[0])[-1]
        return (wide[:-2] + wide[2:] - u) * of_v, (high[:-2] + high[2:] - v) * of_u

    mesh, specs = Mesh((2, 2), ("x", "y"), device="cuda"), (P("x", "y"), P("y", "x"))
    sharded = shard(fun, mesh=mesh, in_specs=specs, out_specs=specs)
    types = ArrayType("float32", (2048, 2048)), ArrayType("float32", (4096, 1024))
    plan = tracegraph.jit(sharded).lower(*types).plan
    assert len(beside(plan)) == 1
    assert not races(plan)


@pytest.mark.parametrize("count", [2, 4])
def test_no_races(count: int) -> None:
    """Of loops in one kernel, in kernels of several steps and in a WHILE node, at all sizes."""
    v = tracegraph_on_all("cuda", count)
    for row in ROWS:
        if not row.name.startswith(("heat", "conjugate")):
            continue
        n = int(row.name.rpartition(" ")[2])
        given = ArrayType("float32", (n, n))
        plan = v.built(row.program(v, row.steps), row.divided, row.same).lower(given).plan
        assert not races(plan)
        assert bool(beside(plan)) == (row.name.startswith("heat") and n >= 1024)
