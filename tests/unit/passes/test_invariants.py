"""Loop-invariant code motion: what leaves a loop and what stays. No bit of a result changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.backends.cuda import TARGET as CUDA
from lowering.backends.host import TARGET as HOST
from lowering.plan.target.overrides import override
from tests.helpers.traced import trace
from tracegraph.ir import interpret
from tracegraph.ir.control_forms import is_loop
from tracegraph.ir.program import Eqn, Program, Region, walk
from tracegraph.ir.verify import verify
from tracegraph.passes import Motion, dce, hoist, optimize

RNG = np.random.default_rng(0)
A, B, X = RNG.standard_normal((6, 6)), RNG.standard_normal((6, 1)), RNG.standard_normal(6)
MOTIONS = {"certain": Motion(), "host": HOST.motion, "cuda": CUDA.motion}


def moved(function: Callable[..., Any], *args: Any, motion: Motion = HOST.motion) -> Program:
    """The program after motion; it has the results of the function."""
    before = optimize(trace(function, *args))
    after = verify(dce(hoist(before, motion)))
    for found, expected in zip(
        interpret.run(after, *args), interpret.run(before, *args), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    return after


def in_loops(region: Region) -> Iterator[Eqn]:
    """The equations in bodies and conditions of loops."""
    for eqn in region.eqns:
        for inner in eqn.regions:
            yield from walk(inner) if is_loop(eqn) else in_loops(inner)


def names_in_loops(p: Program) -> set[str]:
    return {eqn.op.name for eqn in in_loops(p.body)}


def guarded(p: Program) -> set[str]:
    """The ops in branches that are outside of loops."""
    found = [eqn for eqn in p.body.eqns if eqn.regions and not is_loop(eqn)]
    return {inner.op.name for eqn in found for inner in walk(eqn.regions[0])}


def solving(a: Any, b: Any) -> Any:
    return tracegraph.fori_loop(0, 100, lambda i, x: np.linalg.solve(a, b + 1e-3 * x), b)


EXPENSIVE: dict[str, Callable[[Any, Any], Any]] = {
    "lu": lambda a, x: np.linalg.solve(a, x[:, None])[:, 0],
    "cholesky": lambda a, x: np.linalg.cholesky(a @ a.T + 9 * np.eye(6)) @ x,
    "qr": lambda a, x: np.linalg.qr(a).Q @ x,
    "eigh": lambda a, x: np.linalg.eigvalsh(a) * x,
    "fft": lambda a, x: np.fft.fft(a[0]).real + x,
    "sort": lambda a, x: np.sort(a[0]) + x,
    "cumsum": lambda a, x: np.cumsum(a[0]) + x,
    "sum": lambda a, x: np.exp(a).sum() * x,
    "matmul": lambda a, x: (a @ a)[0] + x,
    "gather": lambda a, x: a.ravel()[np.argsort(a.ravel())[:6]] * x,
    "tanh": lambda a, x: np.tanh(a) @ x,
    "scatter_set": lambda a, x: a.copy()[0] + x + _written(a)[0],
}


def _written(a: Any) -> Any:
    y = a.copy()
    y[np.argsort(a[0])] = 1.0
    return y


@pytest.mark.parametrize("motion", MOTIONS)
@pytest.mark.parametrize("name", EXPENSIVE)
def test_expensive_work_leaves_a_loop_of_known_length(name: str, motion: str) -> None:
    step = EXPENSIVE[name]

    def by_fori(a: Any, x: Any) -> Any:
        return tracegraph.fori_loop(0, 50, lambda i, x: np.tanh(step(a, x) + i), x)

    def by_scan(a: Any, x: Any) -> Any:
        def one(x: Any, k: Any) -> Any:
            y = step(a, x) * k
            return 0.5 * y, y

        return tracegraph.scan(one, x, np.ones(50))

    for function in (by_fori, by_scan):
        p = moved(function, A, X, motion=MOTIONS[motion])
        found = {n for n in names_in_loops(p) if n.startswith(name)}
        assert not found or (name == "tanh" and function is by_fori)
        assert any(eqn.op.name.startswith(name) for eqn in p.body.eqns)


def test_the_optimizer_moves_what_is_computed_in_any_case() -> None:
    p = optimize(trace(solving, A, B))
    assert [eqn.op.name for eqn in p.body.eqns].count("lu") == 1
    assert "lu" not in names_in_loops(p)


def test_what_a_loop_may_not_need_is_guarded() -> None:
    def until(a: Any, b: Any, n: Any) -> Any:
        return tracegraph.while_loop(
            lambda x: (x**2).sum() < n, lambda x: x + np.linalg.solve(a, b) + np.exp(a).sum(), b
        )

    for motion in (HOST.motion, CUDA.motion):
        for n in (100.0, -1.0):
            p = moved(until, A, B, n, motion=motion)
            assert guarded(p) >= {"lu"}
            assert not names_in_loops(p) & {"lu", "exp", "triangular_solve"}
    assert "lu" in names_in_loops(optimize(trace(until, A, B, 1.0)))


def test_a_loop_without_steps_factors_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An infinite matrix would be an error of the library; and there is no time for it."""

    def until(a: Any, b: Any, n: Any) -> Any:
        return tracegraph.fori_loop(0, n, lambda i, x: np.linalg.solve(a, x), b)

    calls = []
    from tracegraph.ops.factorizations import lu

    known = lu.getrf
    monkeypatch.setattr(lu, "getrf", lambda a: calls.append(a.shape) or known(a))
    rows = 40  # more than a plan factors by a program of its own
    a, b = np.eye(rows) + RNG.random((rows, rows)) / rows, RNG.random((rows, 1))
    jitted = tracegraph.jit(until, device="host")
    np.testing.assert_array_equal(jitted(a, b, 0), b)
    assert calls == []
    np.testing.assert_allclose(jitted(a, b, 3), np.linalg.solve(a @ a @ a, b))
    assert calls == [(rows, rows)]


def test_a_condition_runs_at_least_once() -> None:
    def until(a: Any, x: Any) -> Any:
        return tracegraph.while_loop(lambda x: x < np.linalg.det(a) ** 2, lambda x: x + 1, x)

    p = moved(until, A, 0.0, motion=Motion())
    assert "lu" not in names_in_loops(p)
    assert guarded(p) == set()


def test_nested_loops_are_left_at_once() -> None:
    def nested(a: Any, x: Any) -> Any:
        def outer(c: Any, k: Any) -> Any:
            def inner(i: Any, y: Any) -> Any:
                return np.linalg.solve(a, y) + np.exp(a).sum() * k + np.cosh(k * a).sum()

            return tracegraph.fori_loop(0, 3, inner, c), k

        return tracegraph.scan(outer, x, np.arange(1.0, 5.0))

    for motion in MOTIONS.values():
        p = moved(nested, A, B, motion=motion)
        assert not names_in_loops(p) & {"lu", "exp"}
        (outer,) = [eqn for eqn in p.body.eqns if is_loop(eqn)]
        assert "cosh" in {eqn.op.name for eqn in outer.regions[-1].eqns}  # outside of the inner one
        assert "cosh" not in {eqn.op.name for eqn in in_loops(outer.regions[-1])}


def test_guards_leave_loops_as_well() -> None:
    def nested(a: Any, b: Any, n: Any) -> Any:
        def outer(i: Any, x: Any) -> Any:
            return tracegraph.fori_loop(0, n, lambda j, y: np.linalg.solve(a, y), x) + 1

        return tracegraph.fori_loop(0, 4, outer, b)

    for n in (0, 2):
        assert "lu" not in names_in_loops(moved(nested, A, B, n))


def test_a_branch_is_left_if_its_choice_is_known_before() -> None:
    def chosen(a: Any, b: Any, flag: Any, k: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            y = tracegraph.cond(flag, lambda: np.linalg.solve(a, x), lambda: x + np.exp(a).sum())
            cases = [lambda: y, lambda: np.linalg.inv(a) @ y, lambda: np.cosh(a).sum() + y]
            return tracegraph.switch(k, cases)

        return tracegraph.fori_loop(0, 5, step, b)

    for flag in (True, False):
        for k in (-3, 0, 1, 2, 9):
            p = moved(chosen, A, B, flag, k)
            assert not names_in_loops(p) & {"lu", "exp", "cosh"}
            assert guarded(p)


def test_what_a_branch_may_not_need_stays_unless_it_is_little() -> None:
    def chosen(a: Any, b: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            def one() -> Any:
                return np.linalg.solve(a, x) + np.exp(a).sum()

            return tracegraph.cond(x[0, 0] > 0, one, lambda: x + 1)

        return tracegraph.fori_loop(0, 5, step, b)

    assert names_in_loops(moved(chosen, A, B)) >= {"lu"}
    assert "exp" not in names_in_loops(moved(chosen, A, B))
    assert "exp" in names_in_loops(moved(chosen, A, B, motion=Motion()))


def test_small_things_do_not_become_large_ones() -> None:
    def pairs(x: Any, y: Any) -> Any:
        def step(i: Any, v: Any) -> Any:
            return np.exp(-((x[:, None] - y) ** 2)) @ v * 0.1

        return tracegraph.fori_loop(0, 32, step, y)

    few, many = np.linspace(0.0, 1.0, 300), np.linspace(0.0, 1.0, 800)
    for motion in MOTIONS.values():
        assert "exp" in names_in_loops(moved(pairs, many, many, motion=motion))
    assert "exp" in names_in_loops(moved(pairs, few, few, motion=CUDA.motion))
    assert "exp" not in names_in_loops(moved(pairs, few, few))


def test_cheap_arithmetic_moves_where_ops_are_calls() -> None:
    def axpy(a: Any, x: Any) -> Any:
        return tracegraph.fori_loop(0, 50, lambda i, y: y * 0.5 + (2 * a + a.T), x)

    a = RNG.standard_normal((300, 300))
    assert names_in_loops(moved(axpy, a, a)).isdisjoint({"transpose"})
    assert "transpose" in names_in_loops(moved(axpy, a, a, motion=CUDA.motion))


def test_effects_and_callbacks_stay() -> None:
    def step(a: Any) -> Callable[[Any, Any], Any]:
        def run(i: Any, x: Any) -> Any:
            tracegraph.debug.print("{}", a[0, 0])
            type_ = tracegraph.ArrayType(np.float64, ())
            return x + tracegraph.pure_callback(lambda v: np.float64(v), type_, a[0, 0])

        return run

    p = optimize(trace(lambda a, x: tracegraph.fori_loop(0, 5, step(a), x), A, X))
    after = dce(hoist(p, HOST.motion))
    assert names_in_loops(after) >= {"debug_print", "pure_callback"}


def test_checks_of_indices_stay_where_they_are() -> None:
    def read(a: Any, k: Any, n: Any) -> Any:
        with tracegraph.check_indices():
            return tracegraph.fori_loop(0, n, lambda i, x: x + np.exp(a[k]).sum(), 0.0)

    jitted = tracegraph.jit(read, device="host")
    assert jitted(A, 99, 0) == 0
    with pytest.raises(IndexError):
        jitted(A, 99, 2)


def test_a_guard_tests_what_the_loop_tests_first() -> None:
    """Once for both."""

    def until(a: Any, b: Any, n: Any) -> Any:
        return tracegraph.while_loop(
            lambda x: np.abs(a @ x).sum() < n, lambda x: np.linalg.solve(a, x), b
        )

    with override(products="library"):
        lowered = tracegraph.jit(until, device="host").lower(A, B, 3.0)
    before_loop = str(lowered.plan).split("while condition")[0]
    assert before_loop.count("matmul") == 1


def test_loops_of_one_step_or_none_keep_their_work() -> None:
    for n in (0, 1):
        p = optimize(
            trace(
                lambda a, b, n=n: tracegraph.scan(
                    lambda c, _: (np.linalg.solve(a, c), c), b, None, length=n
                ),
                A,
                B,
            )
        )
        assert hoist(p, HOST.motion) is p


def test_reverse_mode_keeps_a_factorization_once() -> None:
    """Not once for each step."""

    def loss(a: Any, b: Any) -> Any:
        return (
            tracegraph.fori_loop(0, 20, lambda i, x: np.linalg.solve(a, b + 0.1 * x), b) ** 2
        ).sum()

    def by_steps(a: Any, b: Any) -> Any:
        x = b
        for _ in range(20):
            x = np.linalg.solve(a, b + 0.1 * x)
        return (x**2).sum()

    a, b = A + 6 * np.eye(6), B
    p = optimize(trace(tracegraph.grad(loss), a, b))
    assert [eqn.op.name for eqn in walk(p.body)].count("lu") == 1
    assert not any(value.type.shape == (20, 6, 6) for eqn in walk(p.body) for value in eqn.outputs)
    found = tracegraph.jit(tracegraph.grad(loss, (0, 1)), device="host")(a, b)
    expected = tracegraph.jit(tracegraph.grad(by_steps, (0, 1)), device="host")(a, b)
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-10)


def test_lanes_share_a_factorization() -> None:
    def function(a: Any, b: Any) -> Any:
        return tracegraph.fori_loop(0, 10, lambda i, x: np.linalg.solve(a, b + 1e-3 * x), b)

    bs = RNG.standard_normal((4, 6, 1))
    p = optimize(trace(tracegraph.vmap(function, (None, 0)), A, bs))
    assert "lu" not in names_in_loops(p)
    found = tracegraph.jit(tracegraph.vmap(function, (None, 0)), device="host")(A, bs)
    np.testing.assert_allclose(found, [function(A, b) for b in bs])


def test_a_guard_of_a_loop_without_steps_fills_nothing() -> None:
    def until(a: Any, b: Any, n: Any) -> Any:
        return tracegraph.fori_loop(0, n, lambda i, x: np.linalg.solve(a, x), b)

    for device in ("host", "cuda"):
        lowered = tracegraph.jit(until, device=device).lower(A, B, 3)
        guard = str(lowered.plan).split("else\n")[1].split("while condition")[0]
        assert "map [6, 6]" not in guard
