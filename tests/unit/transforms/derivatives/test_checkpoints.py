"""Checkpoints of loops: gradients stay the same, and reverse mode keeps less."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.gradients import check_gradient, check_second
from tests.programs.checkpoints import LENGTH, LOOPS, Program, of_while_loop
from tests.programs.gradients import X
from tracegraph import errors, fori_loop, grad, jit, scan, vjp, vmap, while_loop
from tracegraph.ir.program import Eqn, walk
from tracegraph.ir.verify import verify
from tracegraph.transforms.derivatives import two_level_checkpoints

each_loop = pytest.mark.parametrize("loop", LOOPS, ids=lambda f: f.__name__[3:])


def loops(program: Program) -> list[Eqn]:
    """The loops of the gradient, from the outermost."""
    found = verify(jit(grad(program), device="host").trace(X).optimized)
    return [eqn for eqn in walk(found.body) if eqn.op.name in ("scan", "while_loop")]


def kept_bytes(program: Program) -> int:
    """The bytes that the first loop stacks."""
    return sum(
        value.type.nbytes
        for value in loops(program)[0].outputs
        if value.type.ndim > 1 and value.type.dtype == np.float64
    )


@each_loop
@pytest.mark.parametrize("checkpoints", [1, 7, 10, 99, 100, 1000])
def test_gradients_are_the_same(loop: Any, checkpoints: int) -> None:
    expected = grad(loop(None))(X)
    found = check_gradient(loop(checkpoints), X)
    np.testing.assert_allclose(found, expected, 1e-12, 1e-12)


@each_loop
def test_compiled(loop: Any) -> None:
    found = jit(grad(loop(7)), device="host")(X)
    np.testing.assert_allclose(found, grad(loop(None))(X), 1e-12, 1e-12)


@each_loop
def test_second_derivatives(loop: Any) -> None:
    check_second(loop(9), X)


@each_loop
def test_as_many_carries_are_kept_as_there_are_checkpoints(loop: Any) -> None:
    assert kept_bytes(loop(None)) >= LENGTH * X.nbytes
    for checkpoints in (4, 10, 50):
        assert kept_bytes(loop(checkpoints)) == checkpoints * X.nbytes
    assert kept_bytes(loop(LENGTH)) == kept_bytes(loop(None))


@each_loop
def test_a_segment_stacks_its_own_steps_alone(loop: Any) -> None:
    """With 10 checkpoints of 100 steps, no array has more than 10 rows of the state."""
    extents = {
        value.type.shape[0]
        for eqn in loops(loop(10))
        for value in eqn.outputs
        if value.type.ndim == 2
    }
    assert max(extents) <= 10


@each_loop
def test_a_loop_beyond_the_budget_is_cut(loop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = grad(loop(None))(X)
    monkeypatch.setattr(two_level_checkpoints, "BUDGET", LENGTH * X.nbytes - 1)
    np.testing.assert_allclose(grad(loop(None))(X), expected, 1e-12, 1e-12)
    assert kept_bytes(loop(None)) == 10 * X.nbytes
    assert kept_bytes(loop(LENGTH)) >= LENGTH * X.nbytes  # as asked for


@pytest.mark.parametrize("steps", [0, 1, 9, 10, 11, 37, 100])
def test_a_loop_with_a_bound_takes_as_many_steps_as_without_checkpoints(steps: int) -> None:
    expected = grad(of_while_loop(None, steps))(X)
    np.testing.assert_allclose(grad(of_while_loop(10, steps))(X), expected, 1e-12, 1e-12)


@pytest.mark.parametrize("inner", LOOPS, ids=lambda f: f.__name__[3:])
@pytest.mark.parametrize("outer", [None, 2])
def test_nested_loops(inner: Any, outer: int | None) -> None:
    def nested(first: int | None, second: int | None) -> Program:
        within = inner(second)

        def function(x: Any) -> Any:
            def step(c: Any, t: Any) -> Any:
                return np.sin(c * within(c + t)), None

            return scan(step, x, np.linspace(0, 1, 6), checkpoints=first)[0].sum()

        return function

    expected = grad(nested(None, None))(X)
    np.testing.assert_allclose(grad(nested(outer, 5))(X), expected, 1e-9, 1e-12)


@each_loop
def test_lanes(loop: Any) -> None:
    lanes = np.stack([X, 2 * X])
    found = vmap(grad(loop(7)))(lanes)
    np.testing.assert_allclose(found, [grad(loop(None))(x) for x in lanes], 1e-9, 1e-12)


def test_lanes_that_end_apart() -> None:
    def steps_of(n: Any, checkpoints: int | None) -> Any:
        def function(x: Any) -> Any:
            def step(c: Any) -> Any:
                return np.sin(c[0]) * x, c[1] + 1

            last = while_loop(
                lambda c: c[1] < n, step, (x, 0), max_steps=30, checkpoints=checkpoints
            )
            return last[0].sum()

        return grad(function)

    counts = np.array([0, 4, 30, 17])
    found = vmap(lambda n: steps_of(n, 5)(X))(counts)
    np.testing.assert_allclose(found, [steps_of(n, None)(X) for n in counts], 1e-12, 1e-12)


def test_prints_happen_once(capsys: pytest.CaptureFixture[str]) -> None:
    def function(x: Any) -> Any:
        def step(c: Any) -> Any:
            tracegraph.debug.print("{}", c[1])
            return np.sin(c[0]) * x, c[1] + 1

        loop = while_loop(lambda c: c[1] < 11, step, (x, 0), max_steps=20, checkpoints=4)
        return loop[0].sum()

    grad(function)(X)
    assert capsys.readouterr().out.split() == [str(i) for i in range(11)]


def test_a_limit_that_is_reached_raises() -> None:
    def function(x: Any) -> Any:
        return while_loop(lambda c: c < 1e9, lambda c: c + x, x, max_steps=20, checkpoints=4)

    with pytest.raises(errors.StepLimitError):
        vjp(function, 1.0)


@pytest.mark.parametrize("value", [0, -1, True, 2.5, "all"])
def test_checkpoints_must_be_a_number_of_steps(value: Any) -> None:
    message = "checkpoints must be None or an int of at least 1"
    with pytest.raises(errors.CheckpointsError, match=f"fori_loop: {message}"):
        fori_loop(0, 3, lambda i, c: c, 1.0, checkpoints=value)
    with pytest.raises(errors.CheckpointsError, match=f"while_loop: {message}"):
        while_loop(lambda c: c < 0, lambda c: c, 1.0, checkpoints=value)
    with pytest.raises(errors.CheckpointsError, match=f"scan: {message}"):
        scan(lambda c, x: (c, x), 1.0, X, checkpoints=value)


def test_checkpoints_must_be_known_while_tracing() -> None:
    def function(n: Any) -> Any:
        return fori_loop(0, 3, lambda i, c: c * 2, 1.0, checkpoints=n)

    with pytest.raises(errors.StaticLengthError, match="checkpoints is a traced"):
        jit(function, device="host")(2)
