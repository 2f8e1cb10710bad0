"""Long runs of native code end by interrupts and time limits, and other threads go on meanwhile."""

from __future__ import annotations

import _thread
from collections.abc import Callable
from threading import Thread, Timer
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.host.executable import HostExecutable
from lowering.native.module import modules_of
from tests.plan.native.running_natively import compiled, native_plan
from tracegraph import control, errors
from tracegraph import numpy as tnp

FOREVER = 1 << 50


def tiny(rounds: Any, x: Any) -> Any:
    return control.fori_loop(0, rounds, lambda i, c: c * 0.5 + 1.0, x)


def short_inside(rounds: Any, x: Any) -> Any:
    return control.fori_loop(0, rounds, lambda i, c: tiny(3, c), x)


def long_inside(rounds: Any, x: Any) -> Any:
    return control.fori_loop(0, rounds, lambda i, c: tiny(60_000, c), x)


def branches(rounds: Any, x: Any) -> Any:
    def step(i: Any, c: Any) -> Any:
        return control.cond(c.sum() > 1.0, lambda c: c * 0.5, lambda c: tiny(2, c), c)

    return control.fori_loop(0, rounds, step, x)


def folds(rounds: Any, x: Any) -> Any:
    def step(i: Any, c: Any) -> Any:
        far = tnp.arange(50_000.0)
        return c * 0.5 + tnp.exp(-((far[:, None] - c[0] * far[None, :]) ** 2)).sum()

    return control.fori_loop(0, rounds, step, x)


def sorts(rounds: Any, x: Any) -> Any:
    return control.fori_loop(0, rounds, lambda i, c: tnp.sort(c * 0.5 + 1.0), x)


def reports(rounds: Any, x: Any) -> Any:
    told = lambda step, total: None  # noqa: E731
    return control.fori_loop(0, rounds, lambda i, c: c * 0.5 + 1.0, x, progress=told)


LOOPS = [tiny, short_inside, long_inside, branches, folds, sorts, reports]
ARGUMENTS = [np.int64(FOREVER), np.ones(3)]


def of_loop(loop: Callable[..., Any]) -> HostExecutable:
    return compiled(native_plan(loop, *ARGUMENTS), poison=False)


def assert_usable(executable: HostExecutable) -> None:
    """With no rounds, the result is the argument."""
    (result,) = executable([np.int64(0), np.arange(3.0)])
    np.testing.assert_array_equal(result, np.arange(3.0))


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_an_interrupt_ends_a_loop(loop: Callable[..., Any]) -> None:
    executable = of_loop(loop)
    for _ in range(2):
        timer = Timer(0.05, _thread.interrupt_main)
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            executable(ARGUMENTS)
        timer.join()
        assert_usable(executable)


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_a_time_limit_ends_a_loop_of_any_thread(loop: Callable[..., Any]) -> None:
    executable, ended = of_loop(loop), []

    def call() -> None:
        with pytest.raises(errors.TimeLimitError), tracegraph.time_limit(0.05):
            executable(ARGUMENTS)
        assert_usable(executable)
        ended.append(loop)

    threads = [Thread(target=call, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    call()
    assert ended == [loop] * 3


def test_an_interrupt_ends_a_long_nest() -> None:
    def distances(x: Any) -> Any:
        return tnp.exp(-((x[:, None] - x[None, :]) ** 2)).sum()

    x = np.arange(400_000.0)  # minutes
    executable = compiled(native_plan(distances, x), poison=False)
    timer = Timer(0.05, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        executable([x])


def test_other_threads_go_on_and_may_end_it() -> None:
    executable, counted = of_loop(tiny), []

    def count() -> None:
        counted.extend(range(100_000))
        _thread.interrupt_main()

    thread = Thread(target=count)

    def run_beside() -> None:
        thread.start()
        executable(ARGUMENTS)

    with pytest.raises(KeyboardInterrupt):
        run_beside()
    thread.join()
    assert len(counted) == 100_000


def test_a_bar_is_drawn_while_its_loop_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []

    class Bar:
        def update(self, step: int) -> None:
            raise RuntimeError(f"drawn at step {step}")

        def close(self) -> None:
            closed.append(self)

    monkeypatch.setattr("tracegraph.progress.open_bar", lambda monitor: Bar())

    def forever(rounds: Any, x: Any) -> Any:
        return control.fori_loop(0, rounds, lambda i, c: c * 0.5, x, progress=True)

    executable = of_loop(forever)
    with pytest.raises(RuntimeError, match="drawn at step"):
        executable(ARGUMENTS)
    assert len(closed) == 1
    assert_usable(executable)


def test_short_plans_do_not_poll() -> None:
    assert (
        "@poll" not in modules_of(native_plan(lambda x: tnp.exp(x).sum() + x, np.ones(1000))).text
    )
    assert "@poll" in modules_of(native_plan(tiny, *ARGUMENTS)).text


def test_parts_of_a_large_plan_poll_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call of a part takes too short to poll, and a round is a call."""
    monkeypatch.setattr("lowering.native.graphs.LARGEST", 0)

    def rounds_of_loops(rounds: Any, x: Any) -> Any:
        return control.fori_loop(0, rounds, lambda i, c: tiny(60_000, c), x)

    plan = native_plan(rounds_of_loops, *ARGUMENTS)
    assert len(modules_of(plan).modules) > 1
    executable = compiled(plan, poison=False)
    with pytest.raises(errors.TimeLimitError), tracegraph.time_limit(0.1):
        executable(ARGUMENTS)
    timer = Timer(0.05, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        executable(ARGUMENTS)
    timer.join()
    assert_usable(executable)
