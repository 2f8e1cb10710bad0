"""Derivatives of loops and branches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.plan import nodes
from lowering.plan.conditional_nodes import WhileNode
from tests.helpers.gradients import check_gradient, check_second
from tests.programs.gradients import PROGRAMS, W, X, bounded, elementwise_branch, rnn
from tracegraph import (
    cond,
    errors,
    fori_loop,
    grad,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    scan,
    vjp,
    vmap,
    while_loop,
)
from tracegraph.ir.program import Program, walk
from tracegraph.transforms.derivatives import two_level_checkpoints

each_program = pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)


@each_program
def test_gradient(program: Any) -> None:
    check_gradient(program, X)


@each_program
def test_second_derivative(program: Any) -> None:
    check_second(program, X)


def equations(program: Program, name: str) -> list[Any]:
    return [eqn for eqn in walk(program.body) if eqn.op.name == name]


def traced(function: Any, *args: Any) -> Program:
    compiled = tracegraph.jit(function, device="host").trace(*args)
    return compiled.program


def test_a_nan_of_the_other_branch_reaches_no_gradient() -> None:
    def safe(x: Any) -> Any:
        return cond(x > 0, lambda x: np.log(x), lambda x: 0 * x, x)

    assert grad(safe)(-1.0) == 0
    assert grad(safe)(2.0) == 0.5


def test_elementwise_branches_keep_nothing() -> None:
    forward, backward = equations(traced(grad(elementwise_branch), X), "cond")
    assert len(forward.outputs) <= 1
    assert len(backward.operands) <= 3  # the predicate, x and the cotangent


def test_a_scan_does_not_stack_its_slices_nor_its_results_again() -> None:
    def function(x: Any, xs: Any) -> Any:
        last, ys = scan(lambda c, t: (np.exp(c) * t, np.exp(c)), x, xs)
        return last.sum() + ys.sum()

    first, last = equations(traced(grad(function), X, np.ones((4, 3))), "scan")
    assert len(first.outputs) == 2  # the carry and the user's ys, which are exp(c)
    assert last.attrs["reverse"]


def test_what_cheap_ops_make_of_kept_values_is_computed_again() -> None:
    """Of each step, the derivatives of the waves and their sum are kept, not what is made of it."""

    def function(x: Any) -> Any:
        def step(c: Any, t: Any) -> Any:
            waves = np.sin(c) + np.cos(2 * c)
            return waves * (1 - 0.4 * waves) * t, None

        return scan(step, x, np.linspace(0, 1, 5))[0].sum()

    check_gradient(function, X)
    program = tracegraph.jit(grad(function), device="host").trace(X).optimized
    first = next(eqn for eqn in program.body.eqns if eqn.op.name == "scan")
    stacked = first.outputs[first.attrs["carry"] :]
    assert sum(v.type.nbytes for v in stacked) == 3 * 5 * 3 * 8


def test_a_scan_of_a_tanh_stacks_the_states_and_nothing_else() -> None:
    def function(w: Any) -> Any:
        return scan(lambda h, t: (np.tanh(w @ h + t), None), np.zeros(3), np.ones((5, 3)))[0].sum()

    first, _ = equations(traced(grad(function), W), "scan")
    stacked = first.outputs[first.attrs["carry"] :]
    assert sum(v.type.nbytes for v in stacked) == 2 * 5 * 3 * 8


def test_a_counted_loop_runs_back_as_many_steps_as_forwards() -> None:
    def steps_back(x: Any) -> Any:
        return grad(bounded)(x)

    loops = equations(traced(steps_back, X), "while_loop")
    assert len(loops) == 2
    assert [loop.attrs.get("counted", False) for loop in loops] == [False, True]


def test_a_loop_that_writes_one_row_a_step_copies_no_carry_back() -> None:
    def body(i: Any, c: Any) -> Any:
        c[i] = c[i - 1] * 0.5 + c[i]
        return c

    def function(x: Any) -> Any:
        return (fori_loop(1, 1000, body, x) ** 2).sum()

    plan = tracegraph.jit(grad(function), device="cuda").lower(np.ones((1000, 16))).plan
    *_, loop = [node for node in nodes.walk(plan.graph) if isinstance(node, WhileNode)]
    kernels = [node for node in nodes.walk(loop.body) if isinstance(node, nodes.KernelNode)]
    assert {nest.space for node in kernels for nest in node.kernel.nests} == {(), (16,)}
    first, second = equations(traced(grad(function), np.ones((1000, 16))), "scan")
    assert len(first.outputs) == 2  # the carry and the counter: no stacks
    assert second.attrs["xs"] == 1


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [16, 23, 40])
def test_long_scans_are_cut_into_segments(
    length: int, reverse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def function(x: Any) -> Any:
        def step(c: Any, t: Any) -> Any:
            state, count = c
            return (np.tanh(W @ state + t * x), count + 1), state.sum() * (count + 1)

        xs = np.outer(np.linspace(0, 1, length), np.ones(3)) * x
        (last, _), ys = scan(step, (x, 0), xs, reverse=reverse)
        return last.sum() + (ys * np.arange(length)).sum()

    def stacked_bytes() -> int:
        first = equations(traced(grad(function), X), "scan")[0]
        return sum(v.type.nbytes for v in first.outputs[first.attrs["carry"] :])

    expected, whole = grad(function)(X), stacked_bytes()
    monkeypatch.setattr(two_level_checkpoints, "BUDGET", 100)
    np.testing.assert_allclose(check_gradient(function, X), expected, 1e-12, 1e-12)
    check_second(function, X)
    assert stacked_bytes() < whole


def test_prints_of_a_long_scan_happen_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def function(x: Any) -> Any:
        def body(i: Any, c: Any) -> Any:
            tracegraph.debug.print("{}", i)
            return np.sin(c) * x

        return fori_loop(0, 17, body, x).sum()

    monkeypatch.setattr(two_level_checkpoints, "BUDGET", 100)
    grad(function)(X)
    assert capsys.readouterr().out.split() == [str(i) for i in range(17)]


def test_conditions_and_integers_are_not_touched() -> None:
    def function(x: Any) -> Any:
        last, count = while_loop(lambda c: c[1] < 5, lambda c: (c[0] * x, c[1] + 1), (x, 0))
        return last.sum() + count

    out, tangent = jvp(function, (X,), (X,))
    np.testing.assert_allclose(out, (X**6).sum() + 5)
    np.testing.assert_allclose(tangent, (6 * X**6).sum())


def test_a_loop_that_no_argument_reaches_needs_no_bound() -> None:
    def function(x: Any) -> Any:
        count = while_loop(lambda n: n < 10, lambda n: n + 1, 0)
        return (x * count).sum()

    np.testing.assert_array_equal(grad(function)(X), np.full(3, 10.0))


def unbounded() -> dict[str, Any]:
    """Functions of a number with loops of unknown length."""

    def newton(a: Any) -> Any:
        return while_loop(lambda x: abs(x * x - a) > 1e-12 * a, lambda x: (x + a / x) / 2, a)

    def counted(x: Any) -> Any:
        return fori_loop(0, while_loop(lambda n: n < 3, lambda n: n + 1, 0), lambda i, c: c * x, x)

    def stacked(x: Any) -> Any:
        def body(c: Any, t: Any) -> Any:
            c = while_loop(lambda c: c < 5, lambda c: c * 1.3 + x**2, c)
            return c * t, c

        last, ys = scan(body, x, np.array([0.1, 0.2, 0.3]))
        return last + ys.sum()

    def counting(x: Any) -> Any:
        y, n = while_loop(lambda c: c[0] < 50, lambda c: (c[0] * x + 1, c[1] + 1), (x, 0))
        return y * n

    def nested(x: Any) -> Any:
        def outer(c: Any) -> Any:
            return while_loop(lambda c: c < 3 * x, lambda c: c * 1.5, c) * 1.1

        return while_loop(lambda c: c < 20 * x, outer, x)

    return {
        "newton": newton,
        "traced bound": counted,
        "in a scan": stacked,
        "with a counter": counting,
        "nested": nested,
        "checkpoint": tracegraph.checkpoint(newton),
        "branch": lambda x: cond(x > 0, newton, lambda x: -x, x),
        "lanes": lambda x: vmap(newton)(x * np.array([1.0, 2.0, 30.0])).sum(),
    }


@pytest.mark.parametrize("name", unbounded())
def test_loops_of_unknown_length_are_linearized(name: str) -> None:
    function = unbounded()[name]
    y, derivative = linearize(function, 2.0)
    assert y == function(2.0)
    wanted = jvp(function, (2.0,), (1.0,))[1]
    step = (function(2.0 + 1e-6) - function(2.0 - 1e-6)) / 2e-6
    np.testing.assert_allclose(wanted, step, rtol=1e-6)
    for t in (1.0, -2.5):
        np.testing.assert_allclose(derivative(t), wanted * t, rtol=1e-12)
    both = tracegraph.jit(lambda x: linearize(function, x)[1](1.0), device="host")
    np.testing.assert_allclose(np.asarray(both(2.0)), wanted, rtol=1e-12)
    np.testing.assert_allclose(jacfwd(function)(2.0), wanted, rtol=1e-12)
    by_lane = vmap(lambda x: linearize(function, x)[1](1.0))(np.array([2.0, 3.0]))
    np.testing.assert_allclose(by_lane[0], wanted, rtol=1e-12)
    second = [
        jvp(lambda x: linearize(function, x)[1](1.0), (2.0,), (1.0,))[1],
        linearize(lambda x: jvp(function, (x,), (1.0,))[1], 2.0)[1](1.0),
        jacfwd(jacfwd(function))(2.0),
    ]
    wanted = jvp(lambda x: jvp(function, (x,), (1.0,))[1], (2.0,), (1.0,))[1]
    np.testing.assert_allclose(second, np.full(3, wanted), rtol=1e-12)
    for backwards in (grad(function), jacrev(function), lambda x: vjp(function, x)):
        with pytest.raises(errors.ReverseLoopError):
            backwards(2.0)


def test_a_loop_that_runs_again_has_its_effects_once(capsys: pytest.CaptureFixture[str]) -> None:
    def function(x: Any) -> Any:
        def body(c: Any) -> Any:
            tracegraph.debug.print("{}", c)
            return c * 2

        return while_loop(lambda c: c < 3, body, x)

    _, derivative = linearize(function, 1.0)
    assert (derivative(1.0), derivative(2.0)) == (4, 8)
    assert capsys.readouterr().out == "1.0\n2.0\n"


def test_an_unbounded_loop_cannot_be_differentiated_backwards() -> None:
    def solve(x: Any) -> Any:
        return while_loop(lambda c: (c**2).sum() < 50, lambda c: c * 1.3, x).sum()

    with pytest.raises(errors.ReverseLoopError) as caught:
        grad(solve)(X)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("cannot differentiate backwards through this while_loop")
    assert "test_control_flow.py:" in lines[1]
    assert lines[1].endswith("in solve, which carries f64[3]")
    assert "max_steps=1000 keeps 23.4 KiB" in lines[2]
    assert "stop_gradient" in lines[3]
    _, tangent = jvp(solve, (X,), (X,))
    np.testing.assert_allclose(tangent, solve(X))
    assert grad(lambda x: tracegraph.stop_gradient(solve(x)) * x.sum())(X).shape == (3,)


def test_a_fori_loop_whose_bounds_are_data_says_so() -> None:
    def solve(x: Any, n: Any) -> Any:
        return fori_loop(0, n, lambda i, c: c * x, x).sum()

    with pytest.raises(errors.ReverseLoopError, match="this fori_loop"):
        tracegraph.jit(grad(solve), device="host")(X, 3)
    np.testing.assert_allclose(grad(solve)(X, 3), 4 * X**3)  # untouched, the bound is static


def test_a_fori_loop_whose_bounds_are_data_has_max_steps() -> None:
    def solve(x: Any, n: Any) -> Any:
        return fori_loop(0, n, lambda i, c: np.sin(c) * x + i, x, max_steps=5).sum()

    slope = tracegraph.jit(grad(solve), device="host")
    for n in (0, 3, 5):
        np.testing.assert_allclose(np.asarray(slope(X, n)), grad(solve)(X, n), 1e-12)
    with pytest.raises(errors.StepLimitError, match="more than max_steps=5 runs"):
        np.asarray(slope(X, 6))


def test_prints_and_checks_of_a_loop_happen_once(capsys: pytest.CaptureFixture[str]) -> None:
    def function(x: Any) -> Any:
        def body(i: Any, c: Any) -> Any:
            tracegraph.debug.print("step {}", i)
            return np.sin(c) * x

        return fori_loop(0, 3, body, x).sum()

    grad(function)(X)
    assert capsys.readouterr().out == "step 0\nstep 1\nstep 2\n"
    np.asarray(tracegraph.jit(grad(function), device="host")(X))
    assert capsys.readouterr().out == "step 0\nstep 1\nstep 2\n"


def test_a_limit_that_is_reached_raises_in_the_gradient_too() -> None:
    def function(x: Any) -> Any:
        return while_loop(lambda c: c.sum() < 1e9, lambda c: c + x * x, x, max_steps=3).sum()

    with pytest.raises(errors.StepLimitError):
        grad(function)(X)


def test_the_pullback_of_a_loop_may_be_called_again() -> None:
    _, pullback = vjp(rnn, X)
    np.testing.assert_array_equal(2 * pullback(1.0)[0], pullback(2.0)[0])


def test_lines_of_derived_equations_are_the_users() -> None:
    for eqn in walk(traced(grad(rnn), X).body):
        assert eqn.source is not None
        assert eqn.source.file.endswith("programs/gradients.py")
