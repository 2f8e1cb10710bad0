"""Random programs of loops and branches with small bodies, the same in tracegraph and in JAX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

KINDS = ("while", "fori", "cond", "scan", "nested")
MOST_IN_BODY = 3
_LATEST = 4
"""How many of the latest vectors a construct may use."""


@dataclass(frozen=True)
class Construct:
    """A loop or branch: the equations of its body, an older vector that they use, two numbers."""

    kind: str
    body: tuple[int, ...]
    other: int
    trips: int
    number: float


def constructs(count: int, seed: int) -> list[Construct]:
    """A random program of `count` loops and branches."""
    rng = np.random.default_rng(seed)
    return [
        Construct(
            str(rng.choice(KINDS)),
            tuple(rng.integers(len(_BODY), size=rng.integers(1, MOST_IN_BODY + 1)).tolist()),
            int(rng.integers(_LATEST)),
            int(rng.integers(2, 50)),
            rng.random(),
        )
        for _ in range(count)
    ]


_BODY: tuple[Callable[..., Any], ...] = (
    lambda xp, x, y, number: x * number,
    lambda xp, x, y, number: x + y,
    lambda xp, x, y, number: xp.sin(x),
    lambda xp, x, y, number: xp.maximum(x, y),
    lambda xp, x, y, number: xp.where(x > number, x, y),
    lambda xp, x, y, number: x - xp.sum(x) * number,
)


def function(xp: Any, loops: Any, program: list[Construct]) -> Callable[..., Any]:
    """A new function of two vectors that carries a program out.

    `loops` has while_loop, fori_loop, cond and scan: they are spelled alike in `tracegraph` and in
    `jax.lax`.
    """

    def run(x: Any, y: Any) -> Any:
        vectors = [x, y]
        for construct in program:
            x, y = vectors[-1], vectors[construct.other % len(vectors)]
            vectors = [*vectors, _carry_out(xp, loops, construct, x, y)][-_LATEST:]
        return vectors[-1]

    return run


def _carry_out(xp: Any, loops: Any, construct: Construct, x: Any, y: Any) -> Any:
    trips, number = construct.trips, construct.number

    def body(x: Any) -> Any:
        for which in construct.body:
            x = _BODY[which](xp, x, y, number)
        return x

    match construct.kind:
        case "while":
            start, unfinished = (x, 0), lambda c: (xp.max(c[0]) < 9.0) & (c[1] < trips)
            return loops.while_loop(unfinished, lambda c: (body(c[0]), c[1] + 1), start)[0]
        case "fori":
            return loops.fori_loop(0, trips, lambda i, x: body(x), x)
        case "cond":
            return loops.cond(xp.sum(x) > number, body, lambda x: x * 0.5, x)
        case "scan":
            x, sums = loops.scan(lambda c, _: (body(c), xp.sum(c)), x, None, length=trips)
            return x + xp.max(sums)
    return loops.fori_loop(  # nested
        0, trips, lambda i, x: loops.cond(xp.sum(x) > number, body, lambda x: x * 0.5, x), x
    )
