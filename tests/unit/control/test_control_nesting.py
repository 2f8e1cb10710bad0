"""Loops and branches inside each other, deep and odd, run as NumPy and Python run them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from tests.corpus import Case
from tests.helpers.running import WAYS, assert_case_agrees, lowered
from tracegraph import cond, fori_loop, map, scan, switch, while_loop

Function = Callable[..., Any]


def agree(function: Function, *arguments: Any, ulps: int = 0) -> None:
    """Require the eager results of the public way, and of the host with nothing left to luck."""
    case = Case("", function, arguments, ulps)
    for way in ("jitted", "in_any_order"):
        assert_case_agrees(case, WAYS[way])


def in_while(f: Function) -> Function:
    return lambda x: while_loop(
        lambda c: c[1] < 2, lambda c: ((f(c[0]) + c[1]) % 101, c[1] + 1), (x, 0)
    )[0]


def in_fori(f: Function) -> Function:
    return lambda x: fori_loop(0, 2, lambda i, c: f(c + i) % 103, x)


def in_scan(f: Function) -> Function:
    def run(x: Any) -> Any:
        last, rows = scan(lambda c, row: (f(c) % 107, c + row), x, np.stack([x, -x]))
        return last + rows[0] - rows[1]

    return run


def in_cond(f: Function) -> Function:
    return lambda x: cond(x.sum() % 2 == 0, lambda x: f(x) + 1, lambda x: x - f(-x), x)


def in_switch(f: Function) -> Function:
    return lambda x: switch(x[0] % 3, [f, lambda x: f(x) * 2, lambda x: x], x)


CONSTRUCTS = (in_while, in_fori, in_scan, in_cond, in_switch)


def nested(wraps: tuple[Function, ...]) -> Function:
    return reduce(lambda f, wrap: wrap(f), wraps, lambda x: (x * 3 + np.roll(x, 1)) % 97)


@pytest.mark.parametrize(
    "order", list(permutations(CONSTRUCTS))[::11], ids=lambda o: "-".join(f.__name__[3:] for f in o)
)
def test_five_constructs_inside_each_other(order: tuple[Function, ...]) -> None:
    agree(nested(order), np.arange(4))


@pytest.mark.parametrize("wrap", CONSTRUCTS)
def test_one_construct_inside_itself_five_times(wrap: Function) -> None:
    agree(nested((wrap,) * 5), np.arange(4))


@pytest.mark.parametrize("n", [0, 1, 5])
def test_sibling_loops(n: int) -> None:
    def siblings(x: Any, n: Any) -> Any:
        up = fori_loop(0, n, lambda i, c: c * 2 + i, x)
        down = fori_loop(0, n, lambda i, c: c - up, x)
        apart = fori_loop(0, n, lambda i, c: c + x[::-1], x)

        def body(i: Any, c: Any) -> Any:
            a = fori_loop(0, i, lambda j, a: a + c, c)
            b = fori_loop(i, n, lambda j, b: b - a, c)
            return (a + b) % 1009

        return up, down, apart, fori_loop(0, n, body, down)

    agree(siblings, np.arange(6), n)


@pytest.mark.parametrize("n", [0, 1, 4, 7])
def test_loops_inside_branches_inside_loops(n: int) -> None:
    def run(x: Any, n: Any) -> Any:
        def even(c: Any, i: Any) -> Any:
            return while_loop(lambda d: d.sum() < 1000, lambda d: d * 2 + 1, c + i)

        def odd(c: Any, i: Any) -> Any:
            return fori_loop(0, i, lambda j, d: (d + j) % 31, c)

        def body(i: Any, c: Any) -> Any:
            c = cond(i % 2 == 0, even, odd, c, i)
            return switch(i, [lambda c: c % 17, lambda c: fori_loop(0, 3, odd_step, c)], c)

        def odd_step(j: Any, c: Any) -> Any:
            return cond(c[0] > j, lambda c: c - 1, lambda c: c + x, c)

        return fori_loop(0, n, body, x)

    agree(run, np.arange(5), n)


@pytest.mark.parametrize("index", [-1, 0, 1, 31, 62, 63, 64, 1000])
def test_a_switch_with_64_branches(index: int) -> None:
    branches = [lambda x, k=k: (x * k - k) % 127 for k in range(64)]
    agree(lambda i, x: switch(i, branches, x), index, np.arange(9))


def test_a_switch_with_64_branches_takes_each_in_one_loop() -> None:
    branches = [lambda x, k=k: (x * 3 + k) % 127 for k in range(64)]
    agree(lambda x: fori_loop(0, 64, lambda i, c: switch(63 - i, branches, c), x), np.arange(3))


@pytest.mark.parametrize("p", [True, False])
def test_branches_that_return_what_they_capture(p: bool) -> None:
    table = np.arange(4.0)

    def run(p: Any, x: Any) -> Any:
        y = x * 2
        return cond(p, lambda: (x, y, 1.5), lambda: (y, table, x[0])), cond(
            p, lambda: (y, y), lambda: (x, y)
        )

    agree(run, p, np.arange(4.0) - 2)


@pytest.mark.parametrize("p", [True, False])
def test_branches_that_do_nothing(p: bool) -> None:
    def run(p: Any, x: Any) -> Any:
        kept = cond(p, lambda x: x, lambda x: x, x)
        half = cond(p, lambda x: x, lambda x: -x, x)
        nothing = cond(p, lambda: (), lambda: ())
        inside = fori_loop(0, 3, lambda i, c: cond(p & (i > 0), lambda c: c, lambda c: c + x, c), x)
        return kept, half, nothing, inside

    agree(run, np.bool_(p), np.arange(5))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 8])
@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_body_that_permutes_its_carries(order: tuple[int, ...], n: int) -> None:
    def run(x: Any, n: Any) -> Any:
        return fori_loop(0, n, lambda i, c: tuple(c[k] for k in order), (x, x.sum() - x, x * x))

    agree(run, np.arange(4), n)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 8])
def test_a_body_that_duplicates_and_swaps_its_carries(n: int) -> None:
    def run(x: Any, n: Any) -> Any:
        def body(i: Any, c: Any) -> Any:
            a, b, d, e = c
            return b, a, a, e + d + np.roll(b, 1)

        first = fori_loop(0, n, body, (x, x + 10, x * 2, x * 0))

        def inner(i: Any, c: Any) -> Any:
            a, b = fori_loop(0, i, lambda j, c: (c[1], c[0]), c)
            return a + 1, np.flip(b)

        return first, fori_loop(0, n, inner, (x, x - 5))

    agree(run, np.arange(4), n)


def test_an_inner_bound_that_the_outer_loop_carries() -> None:
    def run(bound: Any, x: Any) -> Any:
        def outer(c: Any) -> Any:
            k, y, steps = c
            y, count = while_loop(lambda d: d[1] < k, lambda d: (d[0] * 3 % 1009, d[1] + 1), (y, 0))
            return k - 1, y, steps + count

        return while_loop(lambda c: c[0] > 0, outer, (bound, x, 0))

    for bound in (0, 1, 6):
        agree(run, bound, np.arange(3))


@pytest.mark.parametrize("size", [1, 7, 3000])
def test_a_condition_with_several_reductions(size: int) -> None:
    def run(x: Any, limit: Any) -> Any:
        def goes_on(c: Any) -> Any:
            y, n = c
            small = (np.abs(y).max() < limit) & (y.sum() < limit * 100)
            return small & (y.min() > -limit) & np.any(y != 0) & (n < 30)

        return while_loop(goes_on, lambda c: (c[0] * 2 + 1, c[1] + 1), (x, 0))

    x = np.arange(size) % 5
    agree(run, x, 1000)
    agree(run, x * 0, 1000)
    agree(run, -x, 3)


def test_carries_of_every_kind_at_once() -> None:
    def body(i: Any, c: Any) -> Any:
        return {
            "bool": ~c["bool"],
            "half": c["half"] + np.float16(0.5),
            "byte": c["byte"] + np.uint8(100),
            "complex": c["complex"] * 1j,
            "empty": c["empty"] * 2,
            "row": c["row"] - i,
            "count": c["count"] + c["bool"].sum(),
            "none": None,
        }

    def run(n: Any) -> Any:
        carry = {
            "bool": np.array([True, False, True]),
            "half": np.float16(1),
            "byte": np.full(3, 200, np.uint8),
            "complex": np.array([1 + 2j, 0], np.complex64),
            "empty": np.zeros((0, 4)),
            "row": np.zeros((2, 3), np.float32),
            "count": 0,
            "none": None,
        }
        return fori_loop(0, n, body, carry)

    for n in (0, 1, 5):
        agree(run, n)


def test_a_loop_over_nothing_but_empty_arrays() -> None:
    agree(lambda x, n: fori_loop(0, n, lambda i, c: c * i, x), np.zeros((3, 0)), 4)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [1, 2, 5])
@pytest.mark.parametrize("length", [0, 1, 7])
def test_scan_inside_scan(length: int, unroll: int, reverse: bool) -> None:
    def run(xs: Any) -> Any:
        def row(total: Any, x: Any) -> Any:
            last, sums = scan(
                lambda c, v: (c * 2 + v, c - v), total % 13, x, reverse=not reverse, unroll=unroll
            )
            return last % 1009, sums

        return scan(row, 1, xs, reverse=reverse, unroll=unroll)

    agree(run, np.arange(length * 3).reshape(length, 3))


def test_map_over_rows_with_a_loop_for_each() -> None:
    def row(x: Any) -> Any:
        return while_loop(lambda c: c.sum() < 100, lambda c: c * 2 + 1, x), x[0]

    agree(lambda xs: map(row, xs), np.arange(12).reshape(4, 3))


@pytest.mark.parametrize("construct", ["fori_loop", "nested", "scan"])
def test_a_plan_does_not_depend_on_the_number_of_steps(construct: str) -> None:
    def steps(n: int) -> str:
        def run(x: Any) -> Any:
            if construct == "fori_loop":
                return fori_loop(0, n, lambda i, c: np.sin(c) + i, x)
            if construct == "scan":
                return scan(lambda c, _: (c * 0.5, None), x, None, length=n)[0]
            inner = lambda i, c: fori_loop(0, n, lambda j, d: d + i * j, c)  # noqa: E731
            return fori_loop(0, n, inner, x)

        return str(lowered(run, np.ones(5)).plan)

    few, many = steps(10), steps(10_000_000)
    assert "10000000" in many
    assert re.sub(r"\b10\b", "N", few) == re.sub(r"\b10000000\b", "N", many)


def test_a_bound_that_is_an_argument_leaves_the_plan_the_same() -> None:
    def run(x: Any, n: Any) -> Any:
        return fori_loop(0, n, lambda i, c: c * 2 % 1009, x)

    x = np.arange(5)
    assert str(lowered(run, x, 3).plan) == str(lowered(run, x, 3_000_000).plan)
