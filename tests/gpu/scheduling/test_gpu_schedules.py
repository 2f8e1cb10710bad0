"""Loops and branches mean the same on the device in whatever way they are carried out."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.plan.nodes import KernelNode, walk
from lowering.plan.target.features import override
from tests.corpus import CASES
from tests.helpers.forced import BRANCHING, FORCED
from tests.helpers.parameters import in_turn
from tests.helpers.running import assert_case_agrees, eager
from tests.programs.printing import printed
from tracegraph import cond, debug, fori_loop, switch, while_loop
from tracegraph.errors import StepLimitError, StoppedError, TimeLimitError
from tracegraph.testing.ways import using


def forced(way: str) -> Any:
    """Runs functions on the device, their loops and branches carried out in one way."""
    chosen = FORCED[way]

    def run(function: Any, *arguments: Any) -> Any:
        with using(chosen):
            jitted = tracegraph.jit(function, device="cuda")
            results = [jitted(*arguments) for _ in range(2)]
            leaves = [list(map(np.asarray, tracegraph.tree.leaves(result))) for result in results]
        assert [x.tobytes() for x in leaves[0]] == [x.tobytes() for x in leaves[1]]
        return results[0]

    return run


def once(way: str) -> Any:
    """The same, once, waited for."""
    chosen = FORCED[way]

    def run(function: Any, *arguments: Any) -> Any:
        with using(chosen):
            result = tracegraph.jit(function, device="cuda")(*arguments)
            tracegraph.tree.map(np.asarray, result)
        return result

    return run


PINNED = [way for way in FORCED if way != "as_estimated"]
"""The ways that other tests of this folder do not go."""


@pytest.mark.parametrize(("name", "way"), in_turn(BRANCHING, PINNED, rounds=2))
def test_corpus_programs_give_the_same_results(name: str, way: str) -> None:
    assert_case_agrees(CASES[name], forced(way))


def show(x: Any) -> Any:
    def step(i: Any, v: Any) -> Any:
        debug.print("step {}", i)
        v = cond(i % 2 == 0, lambda: (debug.print("even {}", v), v + 1.0)[1], lambda: v * 2.0)
        switch(i, [lambda: None, lambda: debug.print("one {}", v)])
        return v

    return fori_loop(0, 11, step, x)


@pytest.mark.parametrize("way", FORCED)
def test_prints_in_predicated_branches_and_unrolled_loops_are_in_order(way: str) -> None:
    wanted = printed(eager, show, np.arange(3.0))
    assert printed(once(way), show, np.arange(3.0)) == wanted


def test_a_predicated_branch_has_no_node_that_decides() -> None:
    def choose(p: Any, i: Any, x: Any) -> Any:
        x = cond(p, lambda x: np.sin(x).max() + x, lambda x: x - 1, x, schedule="predicated")
        return switch(i, [np.cos, np.exp, lambda x: x[::-1]], x, schedule="predicated")

    run = tracegraph.jit(choose, device="cuda")
    x = np.linspace(0, 3, 100_000)
    for p in (True, False):
        for i in (-1, 0, 1, 2, 9):
            np.testing.assert_allclose(
                np.asarray(run(p, i, tracegraph.asarray(x, device="cuda"))),
                choose(p, i, x),
                rtol=1e-11,
            )
    assert run.stats()["builds"] == 1
    plan = run.lower(True, 0, x).compile().plan
    assert all(isinstance(node, KernelNode) for node in plan.graph.nodes)


@pytest.mark.parametrize("size", [1, 1000, 300_000])
@pytest.mark.parametrize("unroll", [1, 2, 3, 8])
def test_a_loop_makes_exactly_its_steps(unroll: int, size: int) -> None:
    """Its body is one kernel of many blocks that updates in place and sets the condition."""

    @tracegraph.jit(device="cuda")
    def double(x: Any, n: Any) -> Any:
        return while_loop(lambda c: c[1] < n, lambda c: (c[0] * 2, c[1] + 1), (x, 0), unroll=unroll)

    for n in (0, 1, 2, 3, 7, 8, 9, 16, 17):
        result, steps = double(np.ones(size), n)
        assert int(steps) == n
        np.testing.assert_array_equal(np.asarray(result), np.full(size, 2.0**n))
    assert double.stats()["builds"] == 1


@pytest.mark.parametrize("size", [1000, 2_000_000])
def test_a_condition_from_a_reduction_ends_an_unrolled_loop_at_the_right_step(size: int) -> None:
    @tracegraph.jit(device="cuda")
    def halve(x: Any, limit: Any) -> Any:
        return while_loop(
            lambda c: np.sum(c[0]) > limit, lambda c: (c[0] / 2, c[1] + 1), (x, 0), unroll=4
        )

    for n in range(10):
        result, steps = halve(np.ones(size), size / 2.0**n)
        assert int(steps) == n
        np.testing.assert_array_equal(np.asarray(result), np.full(size, 0.5**n))


@pytest.mark.parametrize("unroll", [2, 4, 16])
def test_max_steps_is_exact(unroll: int) -> None:
    for limit in (1, 3, 4, 5, 16, 17):
        bounded = tracegraph.jit(
            lambda x, high, limit=limit: while_loop(
                lambda x: x < high, lambda x: x + 1, x, max_steps=limit, unroll=unroll
            ),
            device="cuda",
        )
        assert int(bounded(0, limit)) == limit
        result = bounded(0, limit + 1)
        with pytest.raises(StepLimitError, match=f"max_steps={limit}"):
            result.synchronize()
        assert int(result) == limit
        assert int(bounded(0, 1)) == 1


@pytest.mark.parametrize("unroll", [2, 5])
def test_progress_counts_the_steps_that_were_made(unroll: int) -> None:
    seen: list[int] = []

    def told(step: int, total: Any) -> None:
        seen.append(step)

    @tracegraph.jit(device="cuda")
    def count(x: Any, n: Any) -> Any:
        return while_loop(lambda x: (x < n).all(), lambda x: x + 1, x, progress=told, unroll=unroll)

    for n in (20_001, 3):
        count(np.zeros(1000), float(n)).synchronize()
        assert seen[-1] == n
        assert seen == sorted(set(seen))
        seen.clear()


@pytest.mark.parametrize("unroll", [2, 16])
def test_an_unrolled_loop_can_be_interrupted(unroll: int) -> None:
    @tracegraph.jit(device="cuda")
    def endless(x: Any) -> Any:
        return while_loop(lambda x: (x > -1).all(), lambda x: x + 1, x, unroll=unroll)

    x = tracegraph.asarray(np.ones(1000), device="cuda")
    result = endless(x)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        result.synchronize()
    timer.join()
    with pytest.raises(StoppedError):
        np.asarray(result)
    with pytest.raises(TimeLimitError), tracegraph.time_limit(0.2):
        np.asarray(endless(x))
    np.testing.assert_array_equal(np.asarray(x), np.ones(1000))


def test_an_argument_that_all_copies_of_a_body_read_can_move() -> None:
    @tracegraph.jit(device="cuda")
    def add(x: Any, y: Any, n: Any) -> Any:
        return fori_loop(0, n, lambda i, c: cond(i != 1, lambda: c + y, lambda: c - y), x)

    for value in (1.0, 2.0, 3.0):
        y = tracegraph.asarray(np.full(1000, value), device="cuda")
        np.testing.assert_array_equal(np.asarray(add(np.zeros(1000), y, 7)), 5 * value)
    assert add.stats()["builds"] == 1


def test_products_past_the_end_change_nothing() -> None:
    @tracegraph.jit(device="cuda")
    def iterate(a: Any, x: Any, n: Any) -> Any:
        return fori_loop(0, n, lambda i, x: (a @ x) % 7, x, unroll=4)

    rng = np.random.default_rng(0)
    a, x = (rng.integers(0, 5, (64, 64)).astype("f8") for _ in range(2))
    expected = x
    for n in range(9):
        np.testing.assert_array_equal(np.asarray(iterate(a, x, n)), expected)
        expected = (a @ expected) % 7


@pytest.mark.parametrize("way", ["both"])
def test_the_host_drives_what_is_scheduled(way: str) -> None:
    def run(x: Any, n: Any) -> Any:
        def body(i: Any, y: Any) -> Any:
            y = cond(i % 2 == 0, lambda y: y + x, lambda y: y * 2, y)
            return switch(i, [lambda y: -y, lambda y: y + 1, lambda y: y - x], y)

        return fori_loop(0, n, body, x)

    x, chosen = np.ones(500), FORCED[way]
    with (
        override(conditional_nodes=False),
        using(chosen),
    ):
        compiled = tracegraph.jit(run, device="cuda").lower(x, 3).compile()
    assert sum(bool(node.bodies) for node in walk(compiled.plan.graph)) == 1
    for n in (0, 1, 4, 8):
        np.testing.assert_array_equal(np.asarray(compiled(x, n)), run(x, n))
