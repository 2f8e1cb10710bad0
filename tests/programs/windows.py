"""Programs that write windows of arrays, at fixed places and at places that are data.

Their values are integers below 2**53, exact in every order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np

import tracegraph

ROWS, COLUMNS = 7, 5
RULES = 13
Step = tuple[int, ...]
"""A rule, the array that it changes, the one that it reads, and six places."""

ARRAYS = tuple(
    np.random.default_rng(seed).integers(-9, 9, (ROWS, COLUMNS)).astype(float) for seed in range(3)
)


def random_steps(random: Random, count: int) -> list[Step]:
    """Steps for `program_of`."""
    return [
        tuple([random.randrange(most) for most in (RULES, 3, 3, 8, 8, 8, 8, 8, 8)])
        for _ in range(count)
    ]


def program_of(steps: Sequence[Step]) -> Callable[..., Any]:
    """A program that changes three arrays step by step, and also gives what it read of them.

    It takes an integer and the arrays.
    """

    def run(n: Any, *given: Any) -> Any:
        arrays = [x.copy() for x in given]
        for rule, a, b, *places in steps:
            arrays[a] = _changed(rule, arrays[a], arrays[b], n, *places)
        return tuple(arrays)

    return run


def _changed(
    rule: int, x: Any, y: Any, n: Any, i: int, j: int, k: int, r: int, c: int, s: int
) -> Any:
    """The array `x` after a rule that reads `y`; both may be one array."""
    i, r, j, c = i % ROWS, r % ROWS, j % COLUMNS, c % COLUMNS
    high, wide = 1 + k % (ROWS - max(i, r)), 1 + s % (COLUMNS - max(j, c))
    here, there = np.s_[i : i + high, j : j + wide], np.s_[r : r + high, c : c + wide]
    x = x.copy() if isinstance(x, np.ndarray) else x
    match rule:
        case 0:
            x[here] = y[there] + k
        case 1:
            x[here] += y[there] % 7
        case 2:
            x[here] -= x[here] * 2 - y[here]
        case 3:
            x[1:, :-1] += y[1:, 1:] - y[:-1, :-1]
        case 4:
            x[1:-1, 1:-1] = (y[:-2, 1:-1] + y[2:, 1:-1] + x[1:-1, 1:-1]) % 11
        case 5:
            x[i] = y[r] % 5 + k
        case 6:
            x[:, j] = y[:, c] % 5
        case 7:
            x[i, j] += y[r, c] % 5
        case 8:
            x = (x + y) % 13
        case 9:
            x = _with_window(x, y[r : r + 1] + 1, n % ROWS, 0)
        case 10:
            x = _with_window(x, y[there] - k, i, n % COLUMNS)
        case 11:
            x[:high] = y[-high:, ::-1] - 1
        case 12:
            x[n % ROWS] += y[i] % 3
    return x


def _with_window(x: Any, window: Any, row: Any, column: Any) -> Any:
    changed = tracegraph.dynamic_update_slice(x, window, (row, column))
    return np.array(changed) if isinstance(x, np.ndarray) else changed


def in_a_loop(body: Callable[..., Any]) -> Callable[..., Any]:
    """Three steps of a program; the number of each is what it takes first."""
    return lambda n, *arrays: tracegraph.fori_loop(
        0, 3, lambda i, carry: body(n + i, *carry), arrays
    )


# programs of the field


def waves(_: Any, e: Any, hx: Any, hy: Any) -> Any:
    """Electromagnetic waves in two dimensions (Yee, 1966), with a source at one point."""

    def step(t: Any, fields: Any) -> Any:
        e, hx, hy = (field.copy() for field in fields)
        hx[:, :-1] -= e[:, 1:] - e[:, :-1]
        hy[:-1] += e[1:] - e[:-1]
        e[1:-1, 1:-1] += (hy[1:-1, 1:-1] - hy[:-2, 1:-1]) - (hx[1:-1, 1:-1] - hx[1:-1, :-2])
        e[e.shape[0] // 3, e.shape[1] // 3] += np.exp(t - t + 0.0)
        return e % 1024, hx % 1024, hy % 1024

    return tracegraph.fori_loop(0, 4, step, (e, hx, hy))


def shallow_water(_: Any, h: Any, u: Any, v: Any) -> Any:
    """Height and velocities on staggered grids, with walls."""

    def step(_: Any, fields: Any) -> Any:
        h, u, v = (field.copy() for field in fields)
        u[:, 1:] -= h[:, 1:] - h[:, :-1]
        v[1:] -= h[1:] - h[:-1]
        h[:, :-1] -= u[:, 1:] - u[:, :-1]
        h[:-1] -= v[1:] - v[:-1]
        return h % 1024, u % 1024, v % 1024

    return tracegraph.fori_loop(0, 4, step, (h, u, v))


def heat(_: Any, x: Any, source: Any, other: Any) -> Any:
    """An explicit step of diffusion, the values at the walls being those beside them."""

    def step(i: Any, x: Any) -> Any:
        y = x.copy()
        y[1:-1, 1:-1] = x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2]
        y[0], y[-1] = y[1], y[-2]
        y[:, 0], y[:, -1] = y[:, 1], y[:, -2]
        return (y + source) % 1024

    return tracegraph.fori_loop(0, 4, step, x), other + 1


def stacked(_: Any, x: Any, y: Any, z: Any) -> Any:
    """Rows that a loop stacks, made of one state."""

    def step(state: Any, row: Any) -> Any:
        state = (state * 3 + row) % 64
        return state, (state, 2 * state, state + row, state * state)

    return tracegraph.scan(step, x[0], y), z


def cached(n: Any, keys: Any, values: Any, x: Any) -> Any:
    """Rows of two caches, written and read in the same step."""

    def step(i: Any, state: Any) -> Any:
        keys, values, x = state
        keys = tracegraph.dynamic_update_slice(keys, x[:1] + i, (i, 0))
        values = tracegraph.dynamic_update_slice(values, x[1:2] * 2, (i, 0))
        x = (x + keys.sum(0) + values[i]) % 64
        return keys, values, x

    return tracegraph.fori_loop(0, 5, step, (keys, values, x))


def triangle(_: Any, x: Any, y: Any, z: Any) -> Any:
    """Rows of a lower triangle, each of another length."""
    x, z = x.copy(), z.copy()
    for i in range(1, min(x.shape)):
        x[i, :i] = x[i - 1, :i] + y[i, :i]
        z[i, i] += x[i, 0]
    return x, z


def torus(n: Any, x: Any, y: Any, z: Any) -> Any:
    """Neighbours in rows that other arrays continue, and in columns that go round."""
    rows = np.concatenate([y[-1:], x, z[:1]])
    columns = sum(k * np.roll(x, k, 1) for k in (-9, -5, -2, -1, 1, 3, 4, 6))
    return rows[:-2] - 2 * rows[2:] + columns + np.roll(y, 2) - np.roll(z, (3, -1), (0, 1)), rows


NAMED = (waves, shallow_water, heat, stacked, cached, triangle, torus)
