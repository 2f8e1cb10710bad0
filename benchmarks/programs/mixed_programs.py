"""Random straight programs of many kinds of equations, the same under any NumPy-like module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import tracegraph

EXTENT = 64
"""Elements of vectors; rows and columns of matrices."""

_VECTORS, _MATRICES = 8, 4
"""How many of the latest values later steps may use."""


@dataclass(frozen=True)
class Step:
    """One step: what it does, which older value it takes besides the latest, and two numbers."""

    kind: str
    other: int
    count: int
    number: float


def _binary(xp, step, x, y):
    names = ("add", "multiply", "maximum", "subtract", "hypot")
    return getattr(xp, names[step.count % len(names)])(x, y)


def _unary(xp, step, x, y):
    names = ("sin", "exp", "tanh", "sqrt", "negative", "abs", "square")
    return getattr(xp, names[step.count % len(names)])(x)


def _fold(xp, step, x, *axis):
    return getattr(xp, ("sum", "max", "min")[step.count % 3])(x, *axis)


def _joined(xp, step, x, y):
    cut = 1 + step.count % (EXTENT - 2)
    return xp.concatenate([x[cut:], y[:cut]])


def _softmax(xp, m):
    e = xp.exp(m - m.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


# by kind: how often it is drawn, and the vector that it makes of the step, the latest and the other
# vector, and the latest matrix
_TO_VECTOR: dict[str, tuple[int, Callable[..., Any]]] = {
    "binary": (5, lambda xp, s, x, y, m: _binary(xp, s, x, y)),
    "unary": (3, lambda xp, s, x, y, m: _unary(xp, s, x, y)),
    "scaled": (2, lambda xp, s, x, y, m: x * s.number),
    "folded": (1, lambda xp, s, x, y, m: y - _fold(xp, s, x)),
    "rows_folded": (1, lambda xp, s, x, y, m: _fold(xp, s, m, s.other % 2) + x),
    "chosen": (1, lambda xp, s, x, y, m: xp.where(x > y, x, s.number)),
    "rolled": (1, lambda xp, s, x, y, m: xp.roll(x, 1 + s.count % 5)),
    "joined": (1, lambda xp, s, x, y, m: _joined(xp, s, x, y)),
    "summed": (1, lambda xp, s, x, y, m: xp.cumsum(x)),
    "reversed": (1, lambda xp, s, x, y, m: x[::-1]),
    "applied": (1, lambda xp, s, x, y, m: m @ x),
}

# the same for matrices: of the latest and the other matrix and vector
_TO_MATRIX: dict[str, tuple[int, Callable[..., Any]]] = {
    "product": (1, lambda xp, s, m, n, x, y: m @ n),
    "outer": (1, lambda xp, s, m, n, x, y: x[:, None] * n + y),
    "mapped": (1, lambda xp, s, m, n, x, y: xp.tanh(m.T - n)),
    "softmax": (1, lambda xp, s, m, n, x, y: _softmax(xp, m)),
}

_KINDS = [
    kind
    for table in (_TO_VECTOR, _TO_MATRIX)
    for kind, (often, _) in table.items()
    for _ in range(often)
]


def steps(count: int, seed: int) -> list[Step]:
    """A random program of `count` steps, each of one to six equations."""
    rng = np.random.default_rng(seed)
    return [
        Step(
            str(rng.choice(_KINDS)), int(rng.integers(1000)), int(rng.integers(1000)), rng.random()
        )
        for _ in range(count)
    ]


def function(xp: Any, program: list[Step]) -> Callable[..., Any]:
    """A new function of two vectors and two matrices that carries a program out."""

    def run(x, y, m, n):
        vectors, matrices = [x, y], [m, n]
        for step in program:
            x, y = vectors[-1], vectors[step.other % len(vectors)]
            m, n = matrices[-1], matrices[step.other % len(matrices)]
            if step.kind in _TO_VECTOR:
                vectors.append(_TO_VECTOR[step.kind][1](xp, step, x, y, m))
            else:
                matrices.append(_TO_MATRIX[step.kind][1](xp, step, m, n, x, y))
            vectors, matrices = vectors[-_VECTORS:], matrices[-_MATRICES:]
        return vectors[-1], matrices[-1]

    return run


@cache
def equations(count: int, seed: int) -> int:
    """How many equations such a program has when it is traced."""
    vector = tracegraph.ArrayType("float32", (EXTENT,))
    matrix = tracegraph.ArrayType("float32", (EXTENT, EXTENT))
    traced = tracegraph.make_program(function(np, steps(count, seed)))
    return len(traced(vector, vector, matrix, matrix).body.eqns)
