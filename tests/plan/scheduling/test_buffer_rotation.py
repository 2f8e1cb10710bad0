"""Unrolled bodies whose carries take turns: no copies of what is not updated in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import tracegraph
from lowering.allocation.in_place import is_own_point
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.nests.analysis import nest_reads, nest_writes
from lowering.plan.nests.kernel import MapNest
from lowering.plan.nodes import Graph, KernelNode, LibraryNode, walk
from lowering.plan.plan import Plan
from lowering.plan.reports.explain import explain
from lowering.plan.target.features import Features
from lowering.plan.target.overrides import Choices
from tests.helpers.compiled import plan_of
from tests.helpers.forced import on_host, planned_once, scheduled
from tracegraph import ArrayType, cond, fori_loop, tree, while_loop
from tracegraph.ir.scalar import const
from tracegraph.ir.scalar_values import Apply, Load

VECTOR = ArrayType("float64", (12,))
LARGE = ArrayType("float32", (512, 512))
NUMBER = ArrayType("int64")
X = np.arange(12.0) - 3


def body_of(plan: Plan) -> Graph:
    (loop,) = [node for node in plan.graph.nodes if isinstance(node, WhileNode)]
    return loop.body


def kernels(graph: Graph) -> list[KernelNode]:
    return [node for node in walk(graph) if isinstance(node, KernelNode)]


def moves(graph: Graph) -> int:
    """Stores of a graph that do nothing but copy an array."""
    maps = [n for node in kernels(graph) for n in node.kernel.nests if isinstance(n, MapNest)]
    return sum(
        isinstance(store.value, Load) and is_own_point(store.value, nest.space)
        for nest in maps
        if nest.space
        for store in nest.stores
    )


def smooth(_: Any, u: Any) -> Any:
    return np.roll(u, 1) + np.roll(u, -1) * 0.25


def stencil(x: Any, n: Any, **ways: Any) -> Any:
    return fori_loop(0, n, smooth, x, **ways)


def swapped(x: Any, n: Any, **ways: Any) -> Any:
    return fori_loop(0, n, lambda i, c: (c[1], c[0]), (x, x * 2), **ways)


def rotated(x: Any, n: Any, **ways: Any) -> Any:
    return fori_loop(0, n, lambda i, c: (c[1], c[2], np.roll(c[0], 1)), (x, x * 2, x * 3), **ways)


def permuted(x: Any, n: Any, **ways: Any) -> Any:
    return fori_loop(0, n, lambda i, c: (c[1], c[2], c[0]), (x, x * 2, x * 3), **ways)


def history(x: Any, n: Any, **ways: Any) -> Any:
    """A chain: what is new becomes old, and what is old older."""
    body = lambda i, c: (c[1], c[2], np.roll(c[0], 1) + c[1][::-1] + i)  # noqa: E731
    return fori_loop(0, n, body, (x, x * 2, x * 3), **ways)


def doubled(x: Any, n: Any, **ways: Any) -> Any:
    return fori_loop(0, n, lambda i, c: (np.roll(c[0], 1),) * 2, (x, x * 2), **ways)


def mixed(x: Any, n: Any, **ways: Any) -> Any:
    """Some carries move, some are updated in place, one only keeps what another was."""
    body = lambda i, c: (np.roll(c[0], 1) + c[1], c[1] * 0.5, c[2] + i, c[0])  # noqa: E731
    return fori_loop(0, n, body, (x, x * 2, 0, x), **ways)


def last_of_each(x: Any, n: Any, **ways: Any) -> Any:
    body = lambda i, c: (np.roll(c[0], 1) + 1, np.roll(c[0], 1)[::-1], c[0][0])  # noqa: E731
    return fori_loop(0, n, body, (x, x, x[0] * 0), **ways)


def replaced_by_a_capture(x: Any, n: Any, **ways: Any) -> Any:
    total = np.cumsum(x)
    body = lambda i, c: (np.roll(c[0], 1) + c[1], total, c[1][::-1])  # noqa: E731
    return fori_loop(0, n, body, (x, x, x), **ways)


def crowded(x: Any, n: Any, **ways: Any) -> Any:
    """The new carry has the memory of what was needed before it, early in the body."""

    def body(i: Any, u: Any) -> Any:
        total = np.cumsum(np.cumsum(u)[::-1]) * 0.01
        return np.roll(u, 1) + total[::-1] * 0.1

    return fori_loop(0, n, body, x, **ways)


def branching(x: Any, n: Any, **ways: Any) -> Any:
    rolled, turned = lambda u: np.roll(u, 1), lambda u: u[::-1] * 0.5 - 1
    return fori_loop(0, n, lambda i, u: cond(u[0] > 0, rolled, turned, u), x, **ways)


def in_a_branch(x: Any, n: Any, **ways: Any) -> Any:
    return cond(x[0] < 0, lambda x: stencil(x, n, **ways), lambda x: x * 3, x)


def in_a_loop(x: Any, n: Any, **ways: Any) -> Any:
    inner = lambda i, u: np.roll(stencil(u, n, **ways), 2) * 0.5  # noqa: E731
    return fori_loop(0, 3, inner, x)


def around_a_loop(x: Any, n: Any, **ways: Any) -> Any:
    return fori_loop(0, n, lambda i, u: np.roll(stencil(u, 3), 2) * 0.5, x)


def one_after_another(x: Any, n: Any, **ways: Any) -> Any:
    first = stencil(x, n, **ways)
    return first, fori_loop(0, n, lambda i, c: (c[1], np.roll(c[0], 1)), (first, x), **ways)


def products(x: Any, n: Any, **ways: Any) -> Any:
    m = x[:9].reshape(3, 3) / 9
    return fori_loop(0, n, lambda i, c: np.tanh(c @ c + c.T), m, **ways)


def bare_products(x: Any, n: Any, **ways: Any) -> Any:
    m = np.floor(x[:9].reshape(3, 3) / 4)
    return fori_loop(0, n, lambda i, c: c @ m, m, **ways)


def read_by_the_condition(x: Any, n: Any, **ways: Any) -> Any:
    def holds(c: Any) -> Any:
        return (c[1] < n) & (c[0][0] + c[0][5] < 1e9)

    return while_loop(holds, lambda c: (smooth(0, c[0]), c[1] + 1), (x, 0), **ways)


def swapped_while(x: Any, n: Any, **ways: Any) -> Any:
    body = lambda c: (c[1], c[0] + 1, c[2] + 1)  # noqa: E731
    return while_loop(lambda c: c[2] < n, body, (x, x[::-1], 0), **ways)


def bounded(x: Any, n: Any, **ways: Any) -> Any:
    body = lambda c: (np.roll(c[0], 1), c[1] + 1)  # noqa: E731
    stops = {"max_steps": 7, "on_max_steps": "stop"}
    return while_loop(lambda c: c[1] < n, body, (x, 0), **stops, **ways)


PROGRAMS = [
    stencil,
    swapped,
    rotated,
    permuted,
    history,
    doubled,
    mixed,
    last_of_each,
    replaced_by_a_capture,
    crowded,
    branching,
    in_a_branch,
    in_a_loop,
    around_a_loop,
    one_after_another,
    products,
    bare_products,
    read_by_the_condition,
    swapped_while,
    bounded,
]


# -- how they look -----------------------------------------------------------------------------


def test_a_known_number_of_steps_has_a_kernel_for_each_and_one_counter() -> None:
    body = body_of(plan_of(lambda u: fori_loop(0, 1000, smooth, u), LARGE))
    nests = [nest for node in kernels(body) for nest in node.kernel.nests]
    steps = [nest for nest in nests if isinstance(nest, MapNest) and nest.space]
    (counter,) = [nest for nest in nests if isinstance(nest, MapNest) and not nest.space]
    assert len(body.nodes) == len(nests) == len(steps) + 1
    assert len(steps) % 2 == 0
    assert moves(body) == 0
    count = counter.stores[0].value
    assert isinstance(count, Apply)
    assert count.args[1] is const(len(steps), count.dtype)


def test_each_copy_writes_what_the_next_one_reads() -> None:
    body = body_of(plan_of(lambda u: fori_loop(0, 8, smooth, u, unroll=4), LARGE))
    nests = [nest for node in kernels(body) for nest in node.kernel.nests if nest_reads(nest)]
    steps = [nest for nest in nests if isinstance(nest, MapNest) and nest.space]
    for one, following in zip(steps, [*steps[1:], steps[0]], strict=True):
        assert nest_writes(one) == nest_reads(following)


@pytest.mark.parametrize(("unroll", "left"), [(2, 0), (4, 0), (3, 1), (5, 1)])
def test_an_odd_number_that_the_user_asks_for_has_one_move(unroll: int, left: int) -> None:
    plan = plan_of(lambda u: stencil(u, 60, unroll=unroll), VECTOR)
    assert moves(body_of(plan)) == left
    assert f"unrolled x{unroll} " in explain(plan)


@pytest.mark.parametrize("unroll", [2, 3, 4])
def test_steps_that_may_be_skipped_share_one_move(unroll: int) -> None:
    plan = plan_of(lambda u, n: stencil(u, n, unroll=unroll), VECTOR, NUMBER)
    assert moves(body_of(plan)) == 1


def test_swapped_carries_need_no_kernel() -> None:
    body = body_of(plan_of(lambda x: swapped(x, 1000, unroll=10), VECTOR))
    assert len(body.nodes) == 1
    assert moves(body) == 0


def test_a_round_of_three_comes_home_after_three_steps() -> None:
    assert moves(body_of(plan_of(lambda x: permuted(x, 999, unroll=3), VECTOR))) == 0
    assert moves(body_of(plan_of(lambda x: permuted(x, 1000, unroll=4), VECTOR))) == 3


def test_products_past_the_end_do_not_write_where_a_carry_is() -> None:
    def run(x: Any, n: Any) -> Any:
        return fori_loop(0, n, lambda i, c: c @ c, x, unroll=2)

    square = ArrayType("float64", (64, 64))
    body = body_of(plan_of(run, square, NUMBER))
    made = {b for node in body.nodes if isinstance(node, LibraryNode) for b in node.writes}
    assert len(made) == 1
    assert moves(body) == 2
    counted = body_of(plan_of(lambda x: run(x, 100), square))
    assert len({b for n in counted.nodes if isinstance(n, LibraryNode) for b in n.writes}) == 2
    assert moves(counted) == 0


def test_a_crowded_carry_gets_memory_of_its_own() -> None:
    plan = scheduled(
        tracegraph.jit(lambda x: crowded(x, 10), device="host").lower(VECTOR),
        Choices(loops="unrolled", unroll=2),
    )
    assert moves(body_of(plan)) == 0
    last, at = max(plan.offsets.items(), key=lambda item: item[1])
    assert last.type == VECTOR
    assert plan.arena_bytes == at + 256


def test_plans_are_the_same_each_time() -> None:
    texts = {str(plan_of(lambda x: history(x, 1000), VECTOR)) for _ in range(3)}
    assert len(texts) == 1


# -- what they give ----------------------------------------------------------------------------


def agree(found: Any, wanted: Any) -> None:
    for new, old in zip(tree.leaves(found), tree.leaves(wanted), strict=True):
        assert_array_equal(new, old)


@pytest.mark.parametrize("unroll", [2, 3, 4])
@pytest.mark.parametrize("function", PROGRAMS)
def test_results_are_those_of_the_eager_run(function: Any, unroll: int) -> None:
    choices = Choices(loops="unrolled", unroll=unroll, products="library")
    run, lacking = on_host(choices), on_host(choices, Features(body_updates=False))
    run_any = planned_once(choices, None, function, X, np.int64(0))
    for n in (0, 1, 2, 3, 9, 10, 11) if unroll < 4 else (3, 4, 8):
        wanted = function(X, np.int64(n))
        agree(run_any(X, np.int64(n)), wanted)
        agree(run(lambda x: function(x, n), X), wanted)  # noqa: B023
    agree(lacking(function, X, np.int64(5)), function(X, np.int64(5)))


@pytest.mark.parametrize("function", [stencil, swapped, history, mixed, read_by_the_condition])
def test_many_steps(function: Any) -> None:
    for n in (997, 1000):
        wanted = on_host(Choices(loops="conditional"))(function, X, np.int64(n))
        agree(on_host(Choices())(function, X, np.int64(n)), wanted)
        agree(on_host(Choices())(lambda x: function(x, n), X), wanted)  # noqa: B023


@pytest.mark.parametrize("unroll", [2, 3])
def test_a_donated_carry_goes_round_in_the_memory_of_the_argument(unroll: int) -> None:
    for function in (stencil, rotated, mixed, bounded):
        for n in range(5):

            def run(x: Any, n: Any) -> Any:
                return function(x, n, unroll=unroll)  # noqa: B023

            donating = tracegraph.jit(run, device="host", donate_argnums=(0,))
            wanted = function(X, n)
            found = donating(tracegraph.asarray(X, device="host"), np.int64(n))
            for new, old in zip(tree.leaves(found), tree.leaves(wanted), strict=True):
                np.testing.assert_allclose(np.asarray(new), old, rtol=1e-12)


def test_progress_and_prints_see_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    def run(x: Any, n: Any, **ways: Any) -> Any:
        def body(i: Any, u: Any) -> Any:
            tracegraph.debug.print("{} {}", i, u[0])
            return smooth(i, u)

        return fori_loop(0, n, body, x, **ways)

    run(X, 5)
    wanted = capsys.readouterr().out
    for ways in ({"unroll": 2}, {"unroll": 3}, {"unroll": 5}):
        seen: list[int] = []

        def watched(x: Any, n: Any = 5) -> Any:
            return run(x, n, progress=lambda step, total: seen.append(step), **ways)  # noqa: B023

        for arguments in ((X,), (X, np.int64(5))):
            seen.clear()
            np.asarray(tracegraph.jit(watched, device="host")(*arguments))
            assert capsys.readouterr().out == wanted
            assert seen[-1] == 5


def test_a_counter_wraps_as_it_does_one_by_one() -> None:
    def run(x: Any) -> Any:
        start = np.uint8(250)
        return fori_loop(0, 12, lambda i, c: (smooth(i, c[0]), c[1] + np.uint8(3)), (x, start))

    wanted = on_host(Choices(loops="conditional"))(run, X)
    assert wanted[1] == np.uint8((250 + 36) % 256)
    for unroll in (2, 3, 4, 12):
        agree(on_host(Choices(loops="unrolled", unroll=unroll))(run, X), wanted)
