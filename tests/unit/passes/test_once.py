"""What branches in loops compute alike each time: once, if at all. No bit of a result changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.backends.cuda import TARGET as CUDA
from lowering.backends.host import TARGET as HOST
from tests.helpers.traced import trace
from tracegraph.ir import interpret
from tracegraph.ir.program import Program, walk
from tracegraph.ir.verify import verify
from tracegraph.ops.factorizations import lu
from tracegraph.passes import dce, hoist, optimize

ROWS = 40  # more than a plan factors by a program of its own
RNG = np.random.default_rng(0)
A = np.eye(ROWS) + RNG.random((ROWS, ROWS)) / ROWS
B = RNG.random((ROWS, 1))


@pytest.fixture
def factored(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A shape for each matrix that is factored."""
    calls: list[Any] = []
    known = lu.getrf
    monkeypatch.setattr(lu, "getrf", lambda a: calls.append(a.shape) or known(a))
    return calls


def every(k: Any) -> Callable[[Any], Any]:
    """Whether a step is one in k."""
    return lambda i: i % k == k - 1


def in_some_steps(a: Any, b: Any, k: Any) -> Any:
    def step(i: Any, x: Any) -> Any:
        return tracegraph.cond(every(k)(i), lambda: np.linalg.solve(a, x), lambda: x + 1)

    return tracegraph.fori_loop(0, 12, step, b)


def in_a_while_loop(a: Any, b: Any, k: Any) -> Any:
    def step(state: Any) -> Any:
        i, x = state
        return i + 1, tracegraph.cond(every(k)(i), lambda: np.linalg.solve(a, x), lambda: x + 1)

    return tracegraph.while_loop(lambda s: s[0] < 12, step, (0, b))[1]


def in_a_scan(a: Any, b: Any, k: Any) -> Any:
    def step(x: Any, i: Any) -> Any:
        x = tracegraph.cond(every(k)(i), lambda: np.linalg.solve(a, x), lambda: x + 1)
        return x, x[0, 0] * i

    return tracegraph.scan(step, b, np.arange(12))


def in_a_switch(a: Any, b: Any, k: Any) -> Any:
    def step(i: Any, x: Any) -> Any:
        cases = [lambda: x, lambda: np.linalg.inv(a) @ x, lambda: x * np.linalg.det(2 * a)]
        return tracegraph.switch(
            tracegraph.cond(every(k)(i), lambda: 1 + i // 4 % 2, lambda: 0), cases
        )

    return tracegraph.fori_loop(0, 12, step, b)


def in_branches_of_branches(a: Any, b: Any, k: Any) -> Any:
    def step(i: Any, x: Any) -> Any:
        def second() -> Any:
            return tracegraph.cond(x[0, 0] > -9, lambda: np.linalg.solve(a, x), lambda: x)

        return tracegraph.cond(every(k)(i), second, lambda: x + 1)

    return tracegraph.fori_loop(0, 12, step, b)


def in_an_inner_loop(a: Any, b: Any, k: Any) -> Any:
    """The inner loop has no steps in some steps of the outer one."""

    def step(i: Any, x: Any) -> Any:
        def inner(state: Any) -> Any:
            return state[0] + 1, np.linalg.solve(a, state[1])

        start = np.where(every(k)(i), 0, 2)
        return tracegraph.while_loop(lambda s: s[0] < 2, inner, (start, x))[1]

    return tracegraph.fori_loop(0, 12, step, b)


LOOPS = (
    *(in_some_steps, in_a_while_loop, in_a_scan, in_a_switch, in_branches_of_branches),
    in_an_inner_loop,
)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("target", [HOST, CUDA], ids=["host", "cuda"])
def test_programs_have_the_same_results(loop: Any, target: Any) -> None:
    before = optimize(trace(loop, A, B, 4))
    after = verify(dce(hoist(before, target.motion)))
    assert after is not before
    for k in (4, 1, 99):
        found, wanted = (interpret.run(p, A, B, k) for p in (after, before))
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_matrix_is_factored_once_if_at_all(loop: Any, factored: list[Any]) -> None:
    jitted = tracegraph.jit(loop, device="host")
    most = 2 if loop is in_a_switch else 1  # of two matrices
    jitted(A, B, 99)
    assert factored == []
    jitted(A, B, 4)
    assert len(factored) == most
    jitted(A, B, 1)
    assert len(factored) == 2 * most
    jitted(2 * A, B, 1)
    assert len(factored) == 3 * most, "what one call has computed is nothing to another"


def lookups(p: Program) -> int:
    """The conds that take what is known or compute it."""
    return sum(
        eqn.op.name == "cond" and not eqn.regions[0].eqns and bool(eqn.regions[1].eqns)
        for eqn in walk(p.body)
    )


def test_nothing_is_kept_twice() -> None:
    """Motion is applied again where other passes have made something to move."""
    once = dce(hoist(optimize(trace(in_some_steps, A, B, 4)), HOST.motion))
    again = dce(hoist(once, HOST.motion))
    assert lookups(once) == lookups(again) == 1


def test_what_takes_less_than_a_branch_stays() -> None:
    def little(a: Any, b: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            return tracegraph.cond(x[0, 0] > 0, lambda: x + np.sort(a[0])[:, None], lambda: -x)

        return tracegraph.fori_loop(0, 12, step, b)

    assert lookups(dce(hoist(optimize(trace(little, A, B)), CUDA.motion))) == 0
    wide = np.zeros((1 << 21, 1))
    large = optimize(trace(little, wide.T, wide))
    assert lookups(dce(hoist(large, CUDA.motion))) == 1


def test_a_long_loop_does_some_work_in_vain() -> None:
    def mapped(steps: int) -> Any:
        def loop(a: Any, x: Any) -> Any:
            def step(i: Any, x: Any) -> Any:
                return tracegraph.cond(x > 0, lambda: x / np.exp(a).sum(), lambda: x + 1)

            return tracegraph.fori_loop(0, steps, step, x)

        p = dce(hoist(optimize(trace(loop, np.zeros((300, 300)), 1.0)), CUDA.motion))
        return [eqn.op.name for eqn in p.body.eqns]

    assert "exp" in mapped(100)
    assert "exp" not in mapped(8)


def test_derivatives_and_lanes_of_such_loops() -> None:
    def loss(b: Any, a: Any) -> Any:
        return in_some_steps(a, b, 4).sum()

    jitted = tracegraph.jit(tracegraph.grad(loss), device="host")
    np.testing.assert_allclose(jitted(B, A), tracegraph.grad(loss)(B, A), rtol=1e-12)
    many = np.stack([B, 2 * B, -B])
    lanes = tracegraph.jit(tracegraph.vmap(in_some_steps, in_axes=(None, 0, None)), device="host")
    wanted = [in_some_steps(A, b, 4) for b in many]
    np.testing.assert_allclose(lanes(A, many, 4), wanted, rtol=1e-12)
