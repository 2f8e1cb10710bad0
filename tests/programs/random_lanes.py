"""Random loops whose lanes never meet: a body for one lane, over a number, a vector and a counter.

A body is a list of steps. Some read a table where the values of the lane say, fold or scan the
vector, or have loops and branches of their own. The loop runs under `vmap`, over one or two axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tracegraph import cond, fori_loop, scan, vmap, while_loop

State = tuple[Any, Any, Any]
"""A number, a vector of three, and how many steps were made."""

Step = Callable[[State, Any], State]


def _scaled(s: State, table: Any) -> State:
    x, v, n = s
    return (5 * x + 3) % 61, v, n


def _turned(s: State, table: Any) -> State:
    x, v, n = s
    return x, v[::-1] + np.cumsum(v) % 7, n


def _folded(s: State, table: Any) -> State:
    x, v, n = s
    return (x + np.sum(v * v) + np.max(v)) % 53, v, n


def _read(s: State, table: Any) -> State:
    x, v, n = s
    return x, (v + table[x % table.shape[0]]) % 31, n


def _branched(s: State, table: Any) -> State:
    x, v, n = s
    x = cond(x % 2 == 0, lambda x: x // 2 + 1, lambda x: x + 7, x)
    return x, v, n


def _looped(s: State, table: Any) -> State:
    x, v, n = s
    x = while_loop(lambda x: x > 20, lambda x: x - 9, x)
    return x, fori_loop(0, 3, lambda i, v: (v + i) % 29, v), n


def _skipped(s: State, table: Any) -> State:
    x, v, n = s

    def long(v: Any) -> Any:
        return while_loop(lambda v: np.sum(v) > 30, lambda v: v // 2, v + 1)

    return x, cond(x % 3 == 0, long, lambda v: v, v), n


def _drawn_out(s: State, table: Any) -> State:
    x, v, n = s
    x, seen = scan(lambda x, y: ((x + y) % 47, x), x, v)
    return x, seen, n


_STEPS: Sequence[Step] = (
    _scaled,
    _turned,
    _folded,
    _read,
    _branched,
    _looped,
    _skipped,
    _drawn_out,
)


@st.composite
def lane_loops(draw: st.DrawFn) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A function with a loop of lanes, and its arguments, all of them integers."""
    steps = draw(st.lists(st.sampled_from(_STEPS), min_size=1, max_size=4))
    kind = draw(st.sampled_from(["while", "counted", "stacked"]))
    limit = draw(st.integers(0, 6))
    shape = draw(st.sampled_from([(5,), (40,), (3, 11)]))
    seed = draw(st.integers(0, 99))

    def body(s: State, table: Any) -> State:
        for step in steps:
            s = step(s, table)
        return (*s[:2], s[2] + 1)

    def one(x: Any, v: Any, table: Any) -> Any:
        start = (x, v, 0)
        if kind == "counted":
            return fori_loop(0, limit, lambda i, s: body((s[0] + i, *s[1:]), table), start)
        if kind == "stacked":
            return scan(lambda s, _: (body(s, table), s[0]), start, None, length=limit + 1)
        return while_loop(
            lambda s: (s[2] < limit) & (s[0] % 5 > 0), lambda s: body(s, table), start
        )

    function: Callable[..., Any] = one
    for _ in shape:
        function = vmap(function, (0, 0, None))
    rng = np.random.default_rng(seed)
    arguments = (
        rng.integers(0, 60, shape),
        rng.integers(0, 30, (*shape, 3)),
        rng.integers(0, 20, 13),
    )
    return function, arguments
