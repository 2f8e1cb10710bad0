"""Loops and branches in Python, for libraries that have none of their own."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any


def repeated(step: Callable[[Any], Any], steps: int) -> Callable[[Any], Any]:
    """A function that applies `step` a number of times."""

    def loop(x: Any) -> Any:
        for _ in range(steps):
            x = step(x)
        return x

    return loop


def python_loops(xp: Any) -> SimpleNamespace:
    """`while_loop`, `fori_loop`, `scan` and `cond`, as tracegraph and `jax.lax` spell them."""

    def while_loop(unfinished: Any, step: Any, state: Any) -> Any:
        while unfinished(state):
            state = step(state)
        return state

    def fori_loop(start: int, stop: int, step: Any, state: Any) -> Any:
        for i in range(start, stop):
            state = step(i, state)
        return state

    def scan(step: Any, carry: Any, xs: Any, length: int | None = None) -> Any:
        if xs is None:
            xs = range(length or 0)
        rows = zip(*xs, strict=True) if isinstance(xs, tuple) else xs
        outputs = []
        for row in rows:
            carry, output = step(carry, row)
            outputs.append(output)
        return carry, xp.stack(outputs)

    def cond(pred: Any, true_fun: Any, false_fun: Any, *operands: Any) -> Any:
        return true_fun(*operands) if pred else false_fun(*operands)

    return SimpleNamespace(while_loop=while_loop, fori_loop=fori_loop, scan=scan, cond=cond)
