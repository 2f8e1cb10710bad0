"""Gradients on the device: checkpoints, arrays that are not filled, loops in one kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.plan.target.scope import Scope
from tests.helpers.compiled import in_scope
from tests.programs.checkpoints import LENGTH, LOOPS, of_while_loop
from tests.programs.gradients import PROGRAMS, X
from tracegraph import fori_loop, grad, hessian, jvp, scan, vmap, while_loop

SCOPES = [Scope(1, 1), Scope(1, 256), Scope(8, 256, clustered=True), Scope(16, 128)]
WIDE = Scope(64, 256)


def close(found: Any, wanted: Any, tolerance: float = 1e-11) -> None:
    for a, b in zip(tracegraph.tree.leaves(found), tracegraph.tree.leaves(wanted), strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), tolerance, tolerance)


def compare(function: Any, *arguments: Any, tolerance: float = 1e-11) -> None:
    """The device gives what the host gives, twice."""
    wanted = tracegraph.jit(function, device="host")(*arguments)
    run = tracegraph.jit(function, device="cuda")
    for _ in range(2):
        close(run(*arguments), wanted, tolerance)


@pytest.fixture
def memory_of_nans() -> None:
    """The pool's free memory holds NaNs: what is read without being written shows."""
    spoilt = [
        tracegraph.asarray(np.full(size, np.nan), device="cuda")
        for size in (100, 1000, 10_000, 100_000, 1_000_000)
        for _ in range(4)
    ]
    for array in spoilt:
        array.synchronize()
    del spoilt


# checkpoints


@pytest.mark.parametrize("loop", LOOPS, ids=lambda f: f.__name__[3:])
@pytest.mark.parametrize("checkpoints", [1, 7, 99, LENGTH])
def test_checkpoints(loop: Any, checkpoints: int) -> None:
    program = loop(checkpoints)
    compare(grad(program), X)
    close(tracegraph.jit(grad(program), device="cuda")(X), grad(loop(None))(X))


@pytest.mark.parametrize("checkpoints", [3, 10])
def test_checkpoints_of_lanes_that_end_at_steps_of_their_own(checkpoints: int) -> None:
    def program(x: Any, steps: Any) -> Any:
        return of_while_loop(checkpoints, steps)(x)

    compare(vmap(grad(program)), np.linspace(-1, 1, 12).reshape(4, 3), np.array([0, 1, 36, 99]))


@pytest.mark.parametrize("checkpoints", [1, 6, LENGTH])
def test_second_derivatives_with_checkpoints(checkpoints: int) -> None:
    for loop in LOOPS:
        compare(hessian(loop(checkpoints)), X, tolerance=1e-9)


# arrays that are not filled


def root(a: Any) -> Any:
    def unfinished(x: Any) -> Any:
        return (np.abs(x * x - a) > 1e-12 * a).any()

    return while_loop(unfinished, lambda x: (x + a / x) / 2, a, max_steps=200).sum()


@pytest.mark.usefixtures("memory_of_nans")
@pytest.mark.parametrize("size", [1, 100, 5000])
def test_rows_of_a_stack_that_no_step_wrote_are_not_read(size: int) -> None:
    a = np.linspace(2, 9, size)
    close(tracegraph.jit(grad(root), device="cuda")(a), 0.5 / np.sqrt(a), 1e-10)
    compare(vmap(grad(root)), a[:, None])
    compare(lambda a: jvp(grad(root), (a,), (a,))[1], a, tolerance=1e-9)


@pytest.mark.usefixtures("memory_of_nans")
def test_a_loop_that_makes_no_step_reads_nothing() -> None:
    compare(grad(root), np.ones(50))


@pytest.mark.usefixtures("memory_of_nans")
def test_stacks_of_bounded_loops_in_a_loop() -> None:
    def program(x: Any) -> Any:
        def step(c: Any, t: Any) -> Any:
            return 0.1 * c * root(c * c * t + 1) + t, c

        return scan(step, x, np.linspace(0, 1, 7))[0].sum()

    compare(grad(program), np.linspace(0.1, 0.5, 4))


# scatters of one constant


@pytest.mark.parametrize("size", [10, 3000])
def test_a_constant_that_hits_elements_more_than_once(size: int) -> None:
    rng = np.random.default_rng(size)
    x, at = rng.normal(size=size), rng.integers(-size, size + 3, size)

    def program(x: Any, at: Any) -> Any:
        return (np.sin(x.at[at].set(2.0)) * x).sum()

    def in_a_loop(x: Any, at: Any) -> Any:
        def step(i: Any, c: Any) -> Any:
            return np.sin(c).at[at + i].set(0.5) * x

        return fori_loop(0, 4, step, x).sum()

    for function in (program, in_a_loop):
        compare(grad(function), x, at)
        compare(lambda x, at, f=function: jvp(grad(f), (x, at), (x, None))[1], x, at)
        compare(vmap(grad(function), (0, None)), np.stack([x, x + 1]), at)


# loops in one kernel


@pytest.mark.parametrize("scope", SCOPES, ids=str)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_gradients_in_every_scope(program: Any, scope: Scope) -> None:
    run = in_scope(grad(program), scope, X)
    for _ in range(2):
        close(run(X), grad(program)(X), 1e-10)


def recurrence(w: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = np.tanh(w * np.roll(h, 1) + x)
        return h, h.sum()

    last, sums = scan(step, xs[0], xs)
    return (last**2).sum() + (sums**2).sum()


@pytest.mark.usefixtures("memory_of_nans")
@pytest.mark.parametrize("scope", [*SCOPES[1:], WIDE], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_of_much_data_in_every_scope(scope: Scope, dtype: str) -> None:
    rng = np.random.default_rng(3)
    w, xs = (rng.normal(size=shape).astype(dtype) for shape in (5000, (30, 5000)))
    tolerance = 2e-3 if dtype == "float32" else 1e-10
    for function, arguments in (
        (grad(recurrence, (0, 1)), (w, xs)),
        (grad(root), (np.abs(w.astype(np.float64)) + 1,)),
    ):
        wanted = tracegraph.jit(function, device="host")(*arguments)
        run = in_scope(function, scope, *arguments)
        for _ in range(2):
            found = run(*arguments)
            for a, b in zip(
                tracegraph.tree.leaves(found), tracegraph.tree.leaves(wanted), strict=True
            ):
                a, b = np.asarray(a), np.asarray(b)
                assert a.dtype == b.dtype
                assert np.abs(a - b).max() <= tolerance * np.abs(b).max()
