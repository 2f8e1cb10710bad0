"""Loops bounded by `max_steps`, by every way of running a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.traced import trace
from tracegraph import control, debug, errors
from tracegraph.ir import interpret
from tracegraph.ir.program import Program, walk
from tracegraph.passes import optimize

pytestmark = pytest.mark.usefixtures("each_host")

X = np.array([1.0, 2.0, 3.0])


def effects_of(traced: Program) -> list[str]:
    names = ("debug_print", "require", "report_step")
    return [eqn.op.name for eqn in walk(traced.body) if eqn.op.name in names]


def doubled(x: Any, limit: Any, max_steps: int, on_max_steps: Any) -> Any:
    return control.while_loop(
        lambda c: c["x"] < limit,
        lambda c: {"x": c["x"] * 2, "n": c["n"] + 1},
        {"x": x, "n": 0},
        max_steps=max_steps,
        on_max_steps=on_max_steps,
    )


@pytest.mark.parametrize("on_max_steps", ["raise", "stop"])
@pytest.mark.parametrize("max_steps", [0, 1, 3, 4, 5, 2**70])
@pytest.mark.parametrize("limit", [0.5, 8.0, 16.0, np.nan])
def test_max_steps_bounds_a_loop(limit: float, max_steps: int, on_max_steps: str) -> None:
    needed = {0.5: 0, 8.0: 3, 16.0: 4}.get(limit, 0)
    args = (1.0, limit, max_steps, on_max_steps)
    traced = trace(lambda x, limit: doubled(x, limit, max_steps, on_max_steps), 1.0, limit)
    runs = [
        lambda: doubled(*args),
        lambda: dict(zip("nx", interpret.run(traced, *map(np.float64, args[:2])), strict=True)),
        lambda: dict(
            zip("nx", interpret.run(optimize(traced), *map(np.float64, args[:2])), strict=True)
        ),
    ]
    for run in runs:
        if needed > max_steps and on_max_steps == "raise":
            with pytest.raises(errors.StepLimitError):
                run()
        else:
            result, steps = run(), min(needed, max_steps)
            assert (int(result["n"]), float(result["x"])) == (steps, 2.0**steps)


def test_the_error_at_the_limit_names_both_functions_and_the_way_out() -> None:
    def still_growing(c: Any) -> Any:
        return c < 100

    def grow(c: Any) -> Any:
        return c + 1

    def loop(c: Any) -> Any:
        return control.while_loop(still_growing, grow, c, max_steps=7)

    for run in (lambda: loop(0), lambda: interpret.run(trace(loop, 0), np.int64(0))):
        with pytest.raises(errors.StepLimitError) as error:
            run()
        assert isinstance(error.value, RuntimeError)
        for fact in (
            "still_growing (test_max_steps.py:",
            "grow (test_max_steps.py:",
            "max_steps=7",
            "on_max_steps='stop'",
            "in loop",
        ):
            assert fact in str(error.value)


def test_a_condition_that_always_holds_can_be_bounded() -> None:
    def f(x: Any) -> Any:
        return control.while_loop(
            lambda c: True, lambda c: c + 1, x, max_steps=5, on_max_steps="stop"
        )

    np.testing.assert_array_equal(f(X), X + 5)
    np.testing.assert_array_equal(interpret.run(trace(f, X), X)[0], X + 5)


def test_the_condition_runs_once_a_step_and_once_at_the_end() -> None:
    log: list[float] = []

    def goes_on(c: float) -> bool:
        log.append(c)
        return c < 3

    control.while_loop(goes_on, lambda c: c + 1, 0, max_steps=9)
    assert log == [0, 1, 2, 3]
    log.clear()
    control.while_loop(goes_on, lambda c: c + 1, 0, max_steps=2, on_max_steps="stop")
    assert log == [0, 1]
    log.clear()
    with pytest.raises(errors.StepLimitError):
        control.while_loop(goes_on, lambda c: c + 1, 0, max_steps=2)
    assert log == [0, 1, 2]


def test_the_limit_of_steps_stands_on_the_equation() -> None:
    traced = trace(lambda x: doubled(x, 8.0, 5, "stop"), 1.0)
    (loop,) = (eqn for eqn in traced.body.eqns if eqn.op.name == "while_loop")
    assert loop.attrs["max_steps"] == 5
    assert not traced.effects
    assert effects_of(trace(lambda x: doubled(x, 8.0, 5, "raise"), 1.0)) == ["require"]


def test_a_failing_inner_loop_fails_after_what_was_printed_before(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def f(x: Any) -> Any:
        def outer(i: Any, c: Any) -> Any:
            debug.print("outer {}", i)
            return control.while_loop(lambda c: c < i * i, lambda c: c + 1, c, max_steps=3)

        y = control.fori_loop(0, 9, outer, x * 0)
        debug.print("not reached")
        return y

    def output(run: Callable[[], Any]) -> str:
        with pytest.raises(errors.StepLimitError):
            run()
        return capsys.readouterr().out

    def g(x: Any) -> Any:
        return control.cond(x > 0, lambda: f(x), lambda: x)

    wanted = output(lambda: f(1.0))
    assert wanted == "outer 0\nouter 1\nouter 2\nouter 3\n"
    for function in (f, g):
        for variant in (trace(function, 1.0), optimize(trace(function, 1.0))):
            assert output(lambda v=variant: interpret.run(v, np.float64(1.0))) == wanted


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint64"])
def test_max_steps_of_a_fori_loop(dtype: str) -> None:
    def total(lower: Any, upper: Any) -> Any:
        return control.fori_loop(lower, upper, lambda i, c: c + 1, 0, max_steps=4)

    kind = np.dtype(dtype).type
    jitted = tracegraph.jit(total, device="host")
    for lower, upper in ((1, 5), (3, 3), (5, 1), (0, 1)):
        assert int(total(kind(lower), kind(upper))) == max(upper - lower, 0)
        assert int(jitted(kind(lower), kind(upper))) == max(upper - lower, 0)
    info = np.iinfo(dtype)
    for function in (total, jitted):
        for lower, upper in ((1, 6), (info.min, info.max)):
            with pytest.raises(errors.StepLimitError, match="max_steps=4 runs"):
                np.asarray(function(kind(lower), kind(upper)))
    inside = tracegraph.jit(lambda x: total(0, 6) + x, device="host")
    with pytest.raises(errors.StepLimitError):
        np.asarray(inside(1))
    with pytest.raises(errors.StepLimitOptionError, match="fori_loop"):
        control.fori_loop(0, 3, lambda i, c: c, 0, max_steps=-1)
