"""Chains of operations that do not fuse, each with a kernel and a buffer of its own.

Beside a loop or a branch, a chain runs before, meanwhile or behind: the nodes of both may share
bytes of the arena only where edges order them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tracegraph.testing.values import Drawn, Env, Known, StepScope, bounded

Link = Callable[[Any], Any]
"""A function of an array with axes, which keeps its shape and dtype."""


def _in_order(x: Any) -> Any:
    return np.take_along_axis(x, np.argsort(x, axis=-1, kind="stable"), axis=-1)


LINKS: Mapping[str, Link] = {
    "cumsum": lambda x: np.cumsum(x, axis=-1),
    "cumsum of flip": lambda x: np.cumsum(x[..., ::-1], axis=-1),
    "sort": lambda x: np.sort(x + 0, axis=-1),  # which makes zeros of one sign
    "take argsort": _in_order,
    "minus sum": lambda x: x - np.sum(x),
}
"""What a chain is made of."""


def beside(scope: StepScope, other: Callable[[StepScope], Drawn]) -> Drawn:
    """A step, with a chain around it: some links before the step, some behind, none in it."""
    i = scope.pick(lambda known: len(known.shape) > 0)
    if i is None:
        return other(scope)
    numbers = st.lists(st.sampled_from(list(LINKS)), max_size=4)
    before, behind = scope.draw(numbers), scope.draw(numbers)
    drawn = other(scope)
    known = scope.known[i]

    def step(env: Env) -> tuple[Any, ...]:
        x = _linked(env[i], before, known)
        results = drawn.step(env)
        return (*results, _linked(x, behind, known))

    text = f"chain of v{i} by {before}, meanwhile, then by {behind}: {drawn.text}"
    return Drawn(step, (*drawn.results, known), text)


def _linked(x: Any, names: list[str], known: Known) -> Any:
    for name in names:
        x = bounded(LINKS[name](x).astype(known.dtype))
    return x
