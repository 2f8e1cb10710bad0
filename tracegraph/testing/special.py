"""Steps of random programs with constants that are NaN, infinite or complex.

What such a step gives are small whole numbers again, so that all other steps stay exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tracegraph.testing.random_steps import unary
from tracegraph.testing.values import Drawn, Env, Known, StepScope, bounded, small

CONSTANTS: tuple[Any, ...] = (np.nan, np.inf, -np.inf, -0.0, 1j, complex(np.nan, -np.inf))

WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "pad": lambda x, c: np.pad(x, 1, constant_values=c),
    "pad after": lambda x, c: np.pad(x, [(0, 2)] + [(0, 0)] * (x.ndim - 1), constant_values=c),
    "join": lambda x, c: np.concatenate([x, np.full_like(x, c)]),
    "join before": lambda x, c: np.concatenate([np.full_like(x[:1], c), x], 0),
    "where": lambda x, c: np.where(x.real > 0, c, x).astype(x.dtype),
    "where not": lambda x, c: np.where(np.isfinite(x) & (x.real < 2), x, c).astype(x.dtype),
    "set": lambda x, c: _set(x, slice(1, None, 2), c),
    "set last": lambda x, c: _set(x, (..., -1), c) if 0 not in x.shape else x,
    "stack": lambda x, c: np.stack([x, np.full_like(x, c)], -1),
    "plus": lambda x, c: x + c,
}

MOVES: dict[str, Callable[[Any], Any]] = {
    "flip": lambda y: y[::-1] if y.ndim else y,
    "roll": lambda y: np.roll(y, 1, -1) if y.ndim else y,
    "step": lambda y: y[::2] if y.ndim else y,
    "tail": lambda y: y[1:] if y.ndim else y,
    "transpose": np.transpose,
    "ravel": np.ravel,
    "first": lambda y: y[0] if y.ndim and y.shape[0] else y,
    "pairs": lambda y: y + y[::-1] if y.ndim else y,
    "sum": lambda y: np.sum(y, axis=-1) if y.ndim else y,
    "sum of rows": lambda y: np.sum(y, axis=0, keepdims=True) if y.ndim else y,
    "running sum": lambda y: np.cumsum(y, axis=0) if y.ndim else y,
    "repeat": lambda y: np.repeat(y, 2),
    "rows": lambda y: y[np.array([0, -1, 0])] if y.ndim and y.shape[0] else y,
    "pad": lambda y: np.pad(y, 1) if y.ndim else y,
    "negative": np.negative,
    "conjugate": np.conjugate,
}


def _set(x: Any, index: Any, constant: Any) -> Any:
    y = x.copy()
    y[index] = constant
    return y


def _whole(y: Any) -> Any:
    """Small whole numbers that say where NaNs and infinities are, in both parts."""
    parts = [y.real, y.imag] if y.dtype.kind == "c" else [y]
    first, *rest = [bounded(np.nan_to_num(p, nan=5, posinf=7, neginf=-3)) for p in parts]
    return first if not rest else first + 2 * rest[0]


def special(scope: StepScope) -> Drawn:
    """A constant put beside or among the elements of a value, moved, and made whole numbers."""
    i = scope.any()
    constant = scope.draw(st.sampled_from(CONSTANTS))
    real = () if isinstance(constant, complex) else ("float32", "float64")
    dtype = np.dtype(scope.draw(st.sampled_from((*real, "complex64", "complex128"))))
    way = scope.draw(st.sampled_from(list(WAYS)))
    moves = scope.draw(st.lists(st.sampled_from(list(MOVES)), max_size=4))
    known = scope.known[i]

    def compute(x: Any) -> Any:
        x = np.atleast_1d(x).astype(dtype)
        y = WAYS[way](x, constant)
        for move in moves:
            y = MOVES[move](y)
        return bounded(np.absolute(_whole(y))).astype(known.dtype)

    result = Known.of(np.asarray(compute(known.sample)))
    if not small(result.shape):
        return unary(scope)
    text = f"{way} {constant} of v{i} as {dtype}" + "".join(f", {move}" for move in moves)

    def step(env: Env) -> tuple[Any, ...]:
        return (compute(env[i]),)

    return Drawn(step, (result,), text)
