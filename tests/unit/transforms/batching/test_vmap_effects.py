"""Prints, checks and progress under vmap: those of each lane that gets there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph import cond, debug, errors, fori_loop, scan, switch, vmap, while_loop

RUNS: dict[str, Callable[..., Any]] = {
    "eager": lambda function: function,
    "jitted": lambda function: tracegraph.jit(function, device="host"),
}

each_run = pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)


@each_run
def test_a_line_for_each_lane_in_order(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def show(x: Any, y: Any) -> Any:
        debug.print("{} of {y}, {}", x, x + y, y=y)
        debug.print("shared {}", y)
        return x

    run(vmap(show, in_axes=(0, None)))(np.arange(3), 5)
    lines = [f"{i} of 5, {i + 5}" for i in range(3)]
    assert capsys.readouterr().out.splitlines() == [*lines, *["shared 5"] * 3]


@each_run
def test_arrays_are_printed_as_those_of_one_lane(
    run: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def show(x: Any) -> Any:
        debug.print("{}", x)
        return x

    run(vmap(show))(np.arange(4.0).reshape(2, 2))
    assert capsys.readouterr().out == "[0. 1.]\n[2. 3.]\n"


@each_run
def test_only_lanes_that_take_the_branch_print(
    run: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def show(text: str, x: Any) -> Any:
        debug.print(text + " {}", x)
        return x * 2

    def choose(x: Any) -> Any:
        y = cond(x > 1, lambda: show("large", x), lambda: x)
        return y + switch(x, [lambda: 0, lambda: show("one", x), lambda: show("more", x)])

    found = run(vmap(choose))(np.arange(4))
    np.testing.assert_array_equal(found, [0, 3, 8, 12])
    assert capsys.readouterr().out.splitlines() == [
        "large 2",
        "large 3",
        "one 1",
        "more 2",
        "more 3",
    ]


@each_run
def test_lanes_that_have_ended_print_no_more(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def count(n: Any) -> Any:
        def step(i: Any) -> Any:
            debug.print("{} of {}", i, n)
            return i + 1

        return while_loop(lambda i: i < n, step, 0)

    np.testing.assert_array_equal(run(vmap(count))(np.array([2, 0, 3])), [2, 0, 3])
    lines = ["0 of 2", "0 of 3", "1 of 2", "1 of 3", "2 of 3"]
    assert capsys.readouterr().out.splitlines() == lines


@each_run
def test_prints_of_nested_loops(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def count(n: Any) -> Any:
        def outer(i: Any) -> Any:
            def inner(j: Any, c: Any) -> Any:
                debug.print("{} {} {}", n, i, j)
                return c + 1

            return i + fori_loop(0, 2, inner, 0) - 1

        def tell(x: Any, i: Any) -> Any:
            debug.print("end {}", n)
            return x, i

        return scan(tell, while_loop(lambda i: i < n, outer, 0), np.arange(1))[0]

    run(vmap(count))(np.array([1, 2]))
    lines = ["1 0 0", "2 0 0", "1 0 1", "2 0 1", "2 1 0", "2 1 1", "end 1", "end 2"]
    assert capsys.readouterr().out.splitlines() == lines


@each_run
def test_lanes_of_lanes_print_in_order(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def show(x: Any) -> Any:
        return cond(x % 2 == 0, lambda: (debug.print("{}", x), x)[1], lambda: x)

    run(vmap(vmap(show)))(np.arange(6).reshape(2, 3))
    assert capsys.readouterr().out.split() == ["0", "2", "4"]


def test_no_lanes_print_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    def show(x: Any) -> Any:
        debug.print("{}", x)
        return x

    assert RUNS["jitted"](vmap(show))(np.zeros(0)).shape == (0,)
    assert capsys.readouterr().out == ""


def _limited(n: Any) -> Any:
    return while_loop(lambda i: i < n, lambda i: i + 1, 0, max_steps=4)


@each_run
def test_one_lane_beyond_its_limit_of_steps_fails(run: Any) -> None:
    limited = run(vmap(_limited))
    np.testing.assert_array_equal(limited(np.array([1, 4, 0])), [1, 4, 0])
    with pytest.raises(errors.StepLimitError, match="max_steps=4"):
        np.asarray(limited(np.array([1, 5, 0])))


@each_run
def test_a_lane_that_does_not_get_there_fails_no_check(run: Any) -> None:
    def guarded(n: Any) -> Any:
        return cond(n < 5, _limited, lambda n: n, n)

    np.testing.assert_array_equal(run(vmap(guarded))(np.array([2, 9])), [2, 9])


@each_run
def test_progress_is_that_of_the_lane_with_the_most_steps(run: Any) -> None:
    seen: list[tuple[int, int | None]] = []

    def count(n: Any) -> Any:
        report = lambda step, total: seen.append((step, total))  # noqa: E731
        return while_loop(lambda i: i < n, lambda i: i + 1, 0, progress=report)

    np.testing.assert_array_equal(np.asarray(run(vmap(count))(np.array([2, 0, 3]))), [2, 0, 3])
    assert seen[-1] == (3, None)
    assert [step for step, _ in seen] == sorted(step for step, _ in seen)
    run(vmap(count))(np.zeros(0, int))


@each_run
def test_progress_of_a_loop_that_all_lanes_share(run: Any) -> None:
    seen: list[tuple[int, int | None]] = []

    def total(x: Any) -> Any:
        report = lambda step, total: seen.append((step, total))  # noqa: E731
        return fori_loop(0, 3, lambda i, c: c + i, x, progress=report)

    np.testing.assert_array_equal(np.asarray(run(vmap(total))(np.arange(2))), [3, 4])
    assert seen[-1] == (3, 3)
