"""Loops in one kernel on the device: every scope, beside each other, stopped, exported."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.plan.target.scope import Scope
from tests.helpers.compiled import in_scope
from tests.helpers.threads import in_threads
from tracegraph import cond, fori_loop, scan, switch, while_loop
from tracegraph.errors import IndexRangeError, StepLimitError, TimeLimitError

SCOPES = [
    Scope(1, 1),
    Scope(1, 32),
    Scope(1, 256),
    Scope(1, 1024),
    Scope(8, 256, clustered=True),
    Scope(16, 128),
    Scope(128, 512),
]
MANY = SCOPES[2:]
SIZES = (7, 1000, 20_000)
DTYPES = ("float32", "float64")


def diffusion(x: Any, n: Any) -> Any:
    """Reads neighbours, folds twice, writes a stack; a branch and a switch."""

    def step(c: Any, k: Any) -> Any:
        x, total = c
        x = (np.roll(x, 1) + np.roll(x, -1)) * 0.5
        x = cond(k % 2 == 0, lambda x: x + 1, lambda x: x * 0.5, x)
        x = switch(k % 3, [lambda x: x, lambda x: x[::-1], np.cos], x)
        return (x, total + np.sum(x)), np.max(x)

    (x, total), most = scan(step, (x, 0.0), np.arange(12))
    return (
        while_loop(lambda c: c[1] < n, lambda c: (c[0] + c[0][::-1], c[1] + 1), (x, 0)),
        total,
        most,
    )


@pytest.mark.parametrize("scope", SCOPES, ids=str)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_scope_gives_what_numpy_gives(scope: Scope, size: int, dtype: str) -> None:
    if scope.threads == 1 and size > 1000:
        pytest.skip("one thread")
    x = np.random.default_rng(0).random(size).astype(dtype)
    run = in_scope(diffusion, scope, x, 3)
    wanted = tracegraph.tree.leaves(diffusion(x, 3))
    for _ in range(3):
        found = tracegraph.tree.leaves(run(x, 3))
        for new, old in zip(found, wanted, strict=True):
            tolerance = 2e-4 if dtype == "float32" else 1e-11
            np.testing.assert_allclose(np.asarray(new), np.asarray(old), tolerance)


@pytest.mark.parametrize("scope", MANY, ids=str)
def test_integers_are_exact_through_scatters_and_rotations(scope: Scope) -> None:
    def run(x: Any, at: Any, n: Any) -> Any:
        def body(i: Any, c: Any) -> Any:
            a, b, counts = c
            counts = counts.copy()
            np.add.at(counts, at, a % 5)
            return np.roll(b, i), a + np.cumsum(b) % 7, counts

        return fori_loop(0, n, body, (x, x[::-1], np.zeros_like(x)))

    rng = np.random.default_rng(1)
    x, at = rng.integers(0, 9, 3000), rng.integers(0, 3000, 3000)
    compiled = in_scope(run, scope, x, at, 5)
    for n in (0, 1, 2, 5, 9):
        for new, old in zip(compiled(x, at, n), run(x, at, n), strict=True):
            np.testing.assert_array_equal(np.asarray(new), np.asarray(old))


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_the_time_limit_stops_it(scope: Scope) -> None:
    x = np.ones(2 * scope.threads)
    endless = in_scope(lambda x: while_loop(lambda x: np.all(x > -1), lambda x: x + 1, x), scope, x)
    x = tracegraph.asarray(x, device="cuda")
    start = time.perf_counter()
    with pytest.raises(TimeLimitError), tracegraph.time_limit(0.1):
        np.asarray(endless(x))
    assert time.perf_counter() - start < 10
    np.testing.assert_array_equal(np.asarray(x), 1)


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_steps_are_limited_and_checked(scope: Scope) -> None:
    def limited(x: Any) -> Any:
        return while_loop(lambda x: np.sum(x) > 0, lambda x: x + 1, x, max_steps=7)

    def checked(x: Any) -> Any:
        return fori_loop(0, 9, lambda i, x: x + x[100 * i], x)

    x = np.ones(300)
    with pytest.raises(StepLimitError):
        np.asarray(in_scope(limited, scope, x)(x))
    with tracegraph.check_indices(), pytest.raises(IndexRangeError):
        np.asarray(in_scope(checked, scope, x)(x))


def test_two_streams_run_loops_at_the_same_time() -> None:
    """The first loop ends when the second has begun to write what it waits for: its own limit."""
    x = np.ones(100)
    slow = in_scope(lambda x, n: fori_loop(0, n, lambda i, x: np.sin(x) + 1, x), SCOPES[2], x, 1)
    slow(x, 1)
    streams = [tracegraph.Stream("cuda") for _ in range(4)]
    results = []
    for stream in streams * 8:
        with tracegraph.stream(stream):
            results.append(slow(x, 20_000))
    for result in results:
        assert np.asarray(result).tobytes() == np.asarray(results[0]).tobytes()


def test_threads_that_call_it_do_not_disturb_each_other() -> None:
    x = np.arange(64.0)
    run = in_scope(diffusion, SCOPES[2], x, 3)
    wanted = [np.asarray(leaf) for leaf in tracegraph.tree.leaves(run(x, 3))]

    def call(_: int) -> None:
        for _ in range(50):
            found = tracegraph.tree.leaves(run(x, 3))
            for new, old in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(np.asarray(new), old)

    in_threads(4, call)


@pytest.mark.parametrize("scope", [SCOPES[0], SCOPES[2], SCOPES[4], SCOPES[5]], ids=str)
def test_an_exported_graph_with_it_becomes_a_part_of_another(scope: Scope) -> None:
    from cuda.core import Device
    from cuda.core.graph import GraphDefinition

    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    x = tracegraph.asarray(np.ones(500), device="cuda")
    compiled = in_scope(lambda x: fori_loop(0, 5, lambda i, x: np.roll(x, 1) * 2, x), scope, x)
    exported = compiled.export_graph(x)
    outer = GraphDefinition()
    outer.embed(exported.definition)
    executable = outer.instantiate()
    for _ in range(3):
        executable.launch(stream)
    stream.sync()
    np.testing.assert_array_equal(np.asarray(exported.results), 32)
