"""What gradients lower to: scatters in parallel, and about as many kernels as twice the forward."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.nests.kernel import MapNest, ScatterNest
from lowering.plan.nodes import KernelNode, launched, walk
from lowering.plan.persistent_kernel import PersistentKernelNode
from lowering.plan.reports.explain import explain
from tests.helpers.compiled import plan_of
from tests.helpers.forced import FORCED, on_host, scheduled
from tests.helpers.running import lowered
from tests.programs.gradients import PROGRAMS, X
from tracegraph import ArrayType, grad

VECTOR = ArrayType(np.float64, (100_000,))
PLACES = ArrayType(np.int64, (100_000,))


def kernels(function: Callable[..., Any], *types: ArrayType) -> int:
    return sum(isinstance(node, KernelNode) for node in walk(plan_of(function, *types).graph))


def scatters(function: Callable[..., Any], *types: ArrayType) -> Iterator[ScatterNest]:
    for node in walk(plan_of(function, *types).graph):
        if isinstance(node, KernelNode):
            yield from (nest for nest in node.kernel.nests if isinstance(nest, ScatterNest))


# scatters


def by_reads(x: Any, i: Any) -> Any:
    return np.sin(x[i]).sum()


def by_sums(x: Any, i: Any) -> Any:
    return np.sin(x.at[i].add(x)).sum()


def by_writes(x: Any, i: Any) -> Any:
    return np.sin(x.at[i].set(x * x)).sum()


def by_extremes(x: Any, i: Any) -> Any:
    return np.sin(x.at[i].max(x * x)).sum()


@pytest.mark.parametrize("function", [by_reads, by_sums, by_writes, by_extremes])
def test_scatters_that_derivatives_add_run_in_parallel(function: Callable[..., Any]) -> None:
    of_function = list(scatters(function, VECTOR, PLACES))
    of_gradient = list(scatters(grad(function), VECTOR, PLACES))
    added = len(of_gradient) - len(of_function)
    assert added > 0 or function is by_sums  # whose derivative reads
    in_order = [nest for nest in of_gradient if nest.repeats and not nest.any_order]
    assert len(in_order) <= sum(nest.repeats > 0 and not nest.any_order for nest in of_function)


# elementwise chains

CHAIN = [np.sin, np.exp, np.tanh, np.square, np.arctan, lambda x: x / (1 + x * x)]


def chain(count: int) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        for i in range(count):
            x = CHAIN[i % len(CHAIN)](x)
        return x.sum()

    return function


@pytest.mark.parametrize("count", [1, 5, 20, 60])
def test_a_chain_has_at_most_twice_the_kernels_and_two(count: int) -> None:
    function = chain(count)
    assert kernels(grad(function), VECTOR) <= 2 * kernels(function, VECTOR) + 2


def test_a_chain_with_several_inputs() -> None:
    def function(x: Any, y: Any) -> Any:
        for _ in range(10):
            x, y = np.sin(x) * y, np.tanh(x + y)
        return (x * y).sum()

    types = VECTOR, VECTOR
    assert kernels(grad(function, (0, 1)), *types) <= 2 * kernels(function, *types) + 2


# slices


def stencil(x: Any) -> Any:
    inner = x[1:-1, 1:-1]
    around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
    return ((around - 4 * inner) ** 2).sum()


def unpacked(x: Any) -> Any:
    scale, shift, rest = x[0], x[1], x[2:]
    return np.exp(scale) * (rest**2).sum() + shift * scale


@pytest.mark.parametrize(
    ("function", "shape", "most"), [(stencil, (300, 300), 2), (unpacked, (10,), 3)]
)
def test_cotangents_of_slices_are_one_sum(
    function: Callable[..., Any], shape: tuple[int, ...], most: int
) -> None:
    type_ = ArrayType(np.float64, shape)
    assert not list(scatters(grad(function), type_))
    assert kernels(grad(function), type_) <= most


def test_those_of_small_parts_of_an_array_are_added_in_place() -> None:
    plan = plan_of(grad(lambda x: x[3] * x[70] * x[500]), VECTOR)
    nests = [
        n for node in walk(plan.graph) if isinstance(node, KernelNode) for n in node.kernel.nests
    ]
    (whole,) = nests
    assert whole.space == VECTOR.shape, "the first is padded"
    assert len(whole.stores) == 1


# stacks of loops


def bounded(x: Any, count: Any = 30) -> Any:
    return tracegraph.while_loop(
        lambda c: c[1] < count,
        lambda c: (np.sin(np.exp(c[0]) * x), c[1] + 1),
        (x, 0),
        max_steps=64,
    )[0].sum()


def stores_to_stacks(function: Callable[..., Any], *types: ArrayType) -> list[int]:
    """How many elements each store to an array of 64 rows, of one lane or of all, writes in a row.

    A nest that fills the array writes all 64 rows.
    """
    found = []
    for node in walk(plan_of(function, *types).graph):
        for nest in node.kernel.nests if isinstance(node, KernelNode) else ():
            if isinstance(nest, (MapNest, ScatterNest)):
                stores = nest.stores if isinstance(nest, MapNest) else (nest.store,)
                stacks = [s.buffer.type for s in stores if 64 in s.buffer.type.shape]
                found += [64 * prod(nest.space) // t.size for t in stacks if t.ndim > 1]
    return found


def test_the_stack_of_a_bounded_loop_is_not_filled() -> None:
    rows = stores_to_stacks(grad(bounded), VECTOR)
    assert rows
    assert set(rows) == {1}


def second(x: Any) -> Any:
    """Forwards over reverse: the Hessian times a vector."""
    return tracegraph.jvp(grad(bounded), (x,), (x,))[1]


@pytest.mark.parametrize("function", [second, tracegraph.vmap(second)], ids=["alone", "lanes"])
def test_nor_are_those_of_its_tangents(function: Callable[..., Any]) -> None:
    shape = (1000,) if function is second else (5, 1000)
    rows = stores_to_stacks(function, ArrayType(np.float64, shape))
    assert len(rows) > len(stores_to_stacks(grad(bounded), VECTOR))
    assert set(rows) == {1}


@pytest.mark.parametrize("checkpoints", [None, 8])
def test_stacks_that_are_not_filled_are_not_read(checkpoints: int | None) -> None:
    def function(x: Any) -> Any:
        return tracegraph.while_loop(
            lambda c: c[1] < 5 * x.sum(),
            lambda c: (np.sin(np.exp(c[0]) * x), c[1] + 1),
            (x, 0),
            max_steps=64,
            checkpoints=checkpoints,
        )[0].sum()

    def product(x: Any) -> Any:
        return tracegraph.jvp(grad(function), (x,), (x,))[1]

    x = np.array([0.5, 0.7, 0.9])
    found = on_host(FORCED["as_estimated"])(product, x)  # in memory that nobody has written
    np.testing.assert_allclose(np.asarray(found), product(x), 1e-12)
    np.testing.assert_allclose(np.asarray(found), tracegraph.hessian(function)(x) @ x, 1e-10)


@pytest.mark.parametrize("counts", [(), (ArrayType(np.int64, (5,)),)], ids=["alike", "apart"])
def test_nor_is_that_of_many_lanes(counts: tuple[ArrayType, ...]) -> None:
    lanes = ArrayType(np.float64, (5, 1000))
    rows = stores_to_stacks(tracegraph.vmap(grad(bounded)), lanes, *counts)
    assert rows
    assert set(rows) == {1}


# schedules

KINDS = (WhileNode, PersistentKernelNode)


def recurrence(w: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        return np.tanh(w * h + x), None

    last, _ = tracegraph.scan(step, np.zeros(64), np.ones((1000, 64)))
    return (last**2).sum()


def square_root(a: Any) -> Any:
    def unfinished(x: Any) -> Any:
        return np.abs(x * x - a).max() > 1e-12

    return tracegraph.while_loop(unfinished, lambda x: (x + a / x) / 2, a, max_steps=1000).sum()


def adaptive(y: Any) -> Any:
    """Heun's method, with steps chosen by the difference from Euler's."""

    def slope(y: Any) -> Any:
        return np.sin(3 * y) - y

    def step(carry: Any) -> Any:
        t, y, h = carry
        first = slope(y)
        euler, second = y + h * first, slope(y + h * first)
        heun = y + h / 2 * (first + second)
        error = np.abs(heun - euler).max()
        ok = error < 1e-4
        t, y = np.where(ok, t + h, t), np.where(ok, heun, y)
        return t, y, h * np.clip(0.9 * np.sqrt(1e-4 / (error + 1e-30)), 0.2, 5.0)

    return tracegraph.while_loop(lambda c: c[0] < 2, step, (0.0, y, 0.01), max_steps=1000)[1].sum()


@pytest.mark.parametrize("function", [recurrence, square_root, adaptive])
def test_small_loops_are_one_kernel_forwards_and_backwards(function: Callable[..., Any]) -> None:
    types = ArrayType(np.float64, (64,))
    shown = [
        tracegraph.jit(f, device="cuda").lower(types).explain() for f in (function, grad(function))
    ]
    assert [text.count("one kernel") for text in shown] == [1, 2]


@pytest.mark.parametrize("asked", ["one_kernel", "conditional", "unrolled"])
@pytest.mark.parametrize("construct", ["fori_loop", "while_loop", "scan"])
def test_a_loop_runs_back_as_was_asked_of_it(construct: str, asked: str) -> None:
    def function(x: Any) -> Any:
        if construct == "fori_loop":
            found = tracegraph.fori_loop(0, 40, lambda i, c: np.sin(c) * x, x, schedule=asked)
        elif construct == "scan":
            found, _ = tracegraph.scan(
                lambda c, _: (np.sin(c) * x, None), x, length=40, schedule=asked
            )
        else:
            found = tracegraph.while_loop(
                lambda c: c.sum() < 50, lambda c: c + x, x, max_steps=40, schedule=asked
            )
        return (found**2).sum()

    rows = explain(lowered(grad(function), VECTOR, device="cuda").plan).splitlines()[2:]
    assert [row.split()[1] for row in rows] == [construct] * 2
    assert all(row.rstrip().endswith("asked for") for row in rows)
    named = {"one_kernel": "one kernel", "conditional": "WHILE node"}.get(asked, asked)
    assert all(named in row for row in rows)


@pytest.mark.parametrize("way", ["one_kernel", "cluster", "grid", "unrolled"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_loops_run_back_in_the_ways_that_they_run_forwards(program: Any, way: str) -> None:
    def shown(function: Any) -> tuple[int, int]:
        """How many loops are nodes of the graph, and how many are one kernel."""
        nodes = list(launched(scheduled(lowered(function, X), FORCED[way]).graph))
        return tuple(sum(isinstance(n, kind) for n in nodes) for kind in KINDS)

    forwards, backwards = shown(program), shown(grad(program))
    if way == "unrolled":
        assert backwards[0] <= 2 * forwards[0]
        assert backwards[1] == 0
    else:
        assert backwards[0] == forwards[0] == 0
        assert backwards[1] >= forwards[1]
