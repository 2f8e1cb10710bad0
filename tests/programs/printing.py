"""Loops and branches that print: random nests, which may fail at a limit of steps, and a loop."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import numpy as np
from hypothesis import strategies as st

import tracegraph
from tracegraph import debug, errors

Step = Callable[[Any], Any]
"""Takes and returns an int64 scalar."""


def numbered(draw: st.DrawFn) -> int:
    return draw(st.integers(0, 99))


def printing(draw: st.DrawFn, depth: int) -> Step:
    label = numbered(draw)

    def step(x: Any) -> Any:
        debug.print("{label}: {}", x, label=label)
        return x + 1

    return step


def branching(draw: st.DrawFn, depth: int) -> Step:
    branches = [block(draw, depth - 1) for _ in range(draw(st.integers(1, 3)))]
    return lambda x: tracegraph.switch(x % 4, branches, x)


def choosing(draw: st.DrawFn, depth: int) -> Step:
    yes, no = block(draw, depth - 1), block(draw, depth - 1)
    known = draw(st.sampled_from([None, True, False]))
    return lambda x: tracegraph.cond(x % 2 == 0 if known is None else known, yes, no, x)


def bounded(draw: st.DrawFn, depth: int) -> Step:
    body, limit = block(draw, depth - 1), draw(st.integers(0, 4))
    needed, mode = draw(st.integers(0, 4)), draw(st.sampled_from(["raise", "stop"]))

    def step(x: Any) -> Any:
        state = tracegraph.while_loop(
            lambda s: s[1] < needed,
            lambda s: (body(s[0]), s[1] + 1),
            (x, 0),
            max_steps=limit,
            on_max_steps=mode,
        )
        return state[0] + state[1]

    return step


def counting(draw: st.DrawFn, depth: int) -> Step:
    body, static = block(draw, depth - 1), draw(st.sampled_from([None, 0, 2]))
    return lambda x: tracegraph.fori_loop(
        0, x % 3 if static is None else static, lambda i, c: body(c + i), x
    )


def scanning(draw: st.DrawFn, depth: int) -> Step:
    body, reverse = block(draw, depth - 1), draw(st.booleans())
    unroll, length = draw(st.integers(0, 3)), draw(st.integers(1, 4))

    def step(x: Any) -> Any:
        def slice_(c: Any, row: Any) -> Any:
            c = body(c + row)
            return c, c * 2

        xs = np.arange(length)
        last, ys = tracegraph.scan(slice_, x, xs, reverse=reverse, unroll=unroll)
        return last + np.sum(ys) % 5

    return step


def mapping(draw: st.DrawFn, depth: int) -> Step:
    body, used = block(draw, depth - 1), draw(st.booleans())

    def step(x: Any) -> Any:
        ys = tracegraph.map(lambda row: body(x + row), np.arange(2))
        return x + np.sum(ys) % 5 if used else x

    return step


def calling(draw: st.DrawFn, depth: int) -> Step:
    body = block(draw, depth - 1)
    return lambda x: body(tracegraph.while_loop(lambda c: c < 0, body, x))


NESTING = (branching, choosing, bounded, counting, scanning, mapping, calling)


def block(draw: st.DrawFn, depth: int) -> Step:
    makers = [printing, *(NESTING if depth else ())]
    steps = [draw(st.sampled_from(makers))(draw, depth) for _ in range(draw(st.integers(1, 3)))]

    def run(x: Any) -> Any:
        for step in steps:
            x = step(x)
        return x % 1000

    return run


@st.composite
def nests(draw: st.DrawFn) -> Step:
    return block(draw, 2)


def outcome(run: Callable[..., Any], function: Step, x: Any) -> tuple[str, Any]:
    """What is printed, and the result or the error."""
    with redirect_stdout(StringIO()) as text:
        try:
            result = int(run(function, x))
        except errors.StepLimitError as error:
            result = str(error).partition("\n")[0]
    return text.getvalue(), result


def printed(run: Callable[..., Any], *arguments: Any) -> str:
    """What is printed while `run` is called."""
    with redirect_stdout(StringIO()) as text:
        run(*arguments)
    return text.getvalue()


def steps(x: Any, n: Any) -> Any:
    """`n` steps of a vector, with a branch and a print in each."""

    def step(i: Any, c: Any) -> Any:
        c = tracegraph.cond(np.sum(c) > 3, lambda c: c - 1, lambda c: c + i, c)
        debug.print("{} {}", i, c[0])
        return c

    return tracegraph.fori_loop(0, n, step, x)
