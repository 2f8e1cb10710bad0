"""Programs with loops and branches, to be batched: each with arguments that have lanes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracegraph import cond, fori_loop, map, scan, switch, while_loop


@dataclass(frozen=True)
class VmapCase:
    """A function of one lane, and arguments for many: those with axis 0 in `axes` have lanes."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    axes: tuple[int | None, ...]


VMAP_CASES: dict[str, VmapCase] = {}


def case(*arguments: Any, axes: tuple[int | None, ...] = ()) -> Callable[..., Any]:
    """Add a function with arguments for its lanes."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        given = axes or (0,) * len(arguments)
        VMAP_CASES[function.__name__] = VmapCase(function, arguments, given)
        return function

    return add


def whole(*shape: int, seed: int = 0, low: int = -9) -> Any:
    """Small whole numbers as floats: their sums are exact in any order."""
    return np.random.default_rng(seed).integers(low, 10, shape).astype(np.float64)


NUMBERS = np.array([1, 27, 2, 97, 6, 1, 871])
SIGNS = np.array([3, -2, 0, -1, 5])


@case(NUMBERS)
def collatz(n):
    def step(carry):
        n, steps = carry
        return cond(n % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, n), steps + 1

    return while_loop(lambda carry: carry[0] > 1, step, (n, 0))[1]


@case(np.array([2.0, 1e-8, 1e12, 1.0, np.inf, 3.0]))
def newton(a):
    def step(carry):
        x, _, steps = carry
        return 0.5 * (x + a / x), x, steps + 1

    start = (1.0 + a, 0.0 * a - 1, 0)
    return while_loop(lambda c: (c[0] != c[1]) & (c[2] < 60), step, start)


@case(whole(4, 3), np.array([0, 2, 5, 1]))
def powers_of_a_vector(x, n):
    return fori_loop(0, n, lambda i, x: x * 2 + i, x)


@case(SIGNS)
def a_loop_that_ends_in_its_branch_only(n):
    def down(n):
        return while_loop(lambda n: n != 0, lambda n: n - 1, n)

    return cond(n > 0, down, lambda n: n * 10, n)


@case(SIGNS, np.array([2, -3, 1, 4, 0]))
def a_branch_in_a_branch(n, m):
    def down(n):
        return while_loop(lambda n: n > 0, lambda n: n - 2, n)

    return cond(n > 0, lambda: cond(m > 0, lambda: down(n), lambda: m - 1), lambda: n + m)


@case(whole(4, 3), True, axes=(0, None))
def a_branch_of_all_lanes(x, flag):
    return cond(flag, lambda x: (x.sum(), x), lambda x: (0.0, x * 2), x)


@case(whole(4, 3), 5, axes=(0, None))
def a_loop_of_all_lanes(x, n):
    def step(carry):
        i, x, shared = carry
        return i + 1, x + shared, shared * 2.0

    return while_loop(lambda carry: carry[0] < n, step, (0, x, 1.0))


@case(whole(6, 2), np.array([-3, 0, 1, 2, 9, 1], np.int32))
def one_of_three(x, index):
    return switch(index, [lambda x: x + 1, lambda x: x * x, lambda x: x - x.sum()], x)


@case(whole(5, 2), np.array([0, 1, 2, 0, 1], np.int16))
def one_of_three_with_loops(x, index):
    def times(n):
        return lambda x: fori_loop(0, n, lambda i, x: x + i, x)

    return switch(index, [times(2), times(5), lambda x: -x], x)


@case(np.array([4, 0, 7, 1]))
def loops_in_loops(n):
    def outer(carry):
        i, total = carry
        inner = while_loop(lambda c: c[0] < i, lambda c: (c[0] + 1, c[1] + c[0]), (0, total))
        return i + 1, inner[1] + 1

    return while_loop(lambda carry: carry[0] < n, outer, (0, 0))


@case(whole(3, 5), whole(3))
def running_totals(xs, start):
    def step(total, x):
        return total + x, total * x

    return scan(step, start, xs)


@case(whole(3, 5, 2), whole(5), axes=(0, None))
def reverse_scan_of_shared_slices(x, ys):
    def step(carry, y):
        total, count = carry
        return (total + y * 2, count + 1), (y + 1, count, total)

    return scan(step, (x[0], 0), ys, reverse=True)


@case(whole(3), whole(4), axes=(0, None))
def a_scan_that_forgets_its_carry(x, ys):
    def step(carry, y):
        return (y, carry[0]), carry[1]

    return scan(step, (x, 0.0), ys)


@case(whole(3), 2, axes=(0, None))
def a_loop_that_forgets_its_carry(x, n):
    return fori_loop(0, n, lambda i, x: 2.0 * i, x), fori_loop(0, 0 * n, lambda i, x: 2.0 * i, x)


@case(whole(3, 4, 2))
def mapped(xs):
    return map(lambda x: x * x.sum(), xs)


@case(np.array([[3, 0, 3, 1], [2, 2, 2, 0], [1, 0, 0, 3]]))
def histogram(xs):
    def step(counts, x):
        counts[x] += 1
        return counts, counts.max()

    return scan(step, np.zeros(4, int), xs)


@case(whole(4, 6), np.array([3, 0, 6, 1]))
def rows_written_until_each_ends(x, n):
    def step(carry):
        i, x, marks = carry
        x[i] = x[i - 1] + 1
        x[2] += 5
        marks[1:3] = i
        return i + 1, x, marks

    start = (0, x, np.zeros(4, int))
    return while_loop(lambda carry: carry[0] < n, step, start)


@case(np.zeros((4, 0)), np.array([2, 0, 3, 1]))
def empty_rows_written(x, n):
    def step(carry):
        i, x, y = carry
        x[:] = i
        y[:] = i
        return i + 1, x, y

    return while_loop(lambda carry: carry[0] < n, step, (0, x, np.zeros((0, 2))))


@case(whole(4, 6), np.array([3, 0, 5, 1]))
def written_and_replaced(x, n):
    def step(carry):
        i, x, _ = carry
        x[i] = -1
        return i + 1, x * 2, x

    return while_loop(lambda carry: carry[0] < n, step, (0, x, x))


@case(whole(4, 6), np.array([3, 0, 5, 1]))
def carries_that_change_places(x, n):
    def step(carry):
        i, x, y = carry
        x[i] = y[0]
        return i + 1, y, x

    return while_loop(lambda carry: carry[0] < n, step, (0, x, x + 1))


@case(whole(4, 6), np.array([[0, 5], [-1, 2], [3, 3], [1, 0]]))
def reads_and_writes_at_indices(x, i):
    x = x.copy()
    x[i] = x[i[::-1]] + 1
    x[1] = 7
    return x, x[i[0]], np.take(x, i, mode="clip")


@case(whole(4, 3, 3), SIGNS[:4])
def a_product_in_a_branch(x, n):
    return cond(n > 0, lambda x: x @ x, lambda x: x.T, x)


@case(whole(3, 2, 3), whole(3, 4), axes=(0, None))
def products_with_a_shared_matrix(x, y):
    return x @ y, y.T @ x.T, x[0] @ y


@case(np.array([10, 3, 0, 6]))
def at_most_five_steps(n):
    return while_loop(lambda n: n > 0, lambda n: n - 1, n, max_steps=5, on_max_steps="stop")


@case({"x": whole(3, 2), "n": np.array([1, 4, 2])}, (whole(3), None))
def trees(state, pair):
    def step(carry):
        return {"x": carry["x"] + pair[0], "n": carry["n"] - 1}

    last = while_loop(lambda carry: carry["n"] > 0, step, state)
    return [last["x"], (last["n"], None)], pair


@case(np.array([5, 40, 11]), np.array([[2, 3], [7, 1], [1, 1]]))
def a_condition_with_a_loop(n, weights):
    def heavy(carry):
        total = fori_loop(0, weights[0], lambda i, t: t + weights[1], 0)
        left = while_loop(lambda k: k > carry, lambda k: k - 3, n)
        return total * carry < n + left - left % 2

    return while_loop(heavy, lambda k: k + 1, 0)
