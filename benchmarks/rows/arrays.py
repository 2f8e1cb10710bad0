"""Single functions of arrays that a CPU computes in microseconds to milliseconds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness.own import written_once
from benchmarks.harness.row import MICROSECONDS, MILLISECONDS, Draw, Inputs, Row

_MEBI = 1 << 20


def _random(*shapes: tuple[int, ...], dtype: str = "float64") -> Callable[[Draw], Inputs]:
    return lambda draw: [draw.uniform(shape, np.dtype(dtype)) for shape in shapes]


def _anywhere(draw: Draw) -> Inputs:
    """Numbers, and random places among them."""
    numbers = draw.uniform(_MEBI, np.dtype("float64"))
    return [numbers, draw.rng.integers(0, _MEBI, _MEBI)]


def _softmax(xp: Any, x: Any) -> Any:
    raised = xp.exp(x - x.max(1)[:, None])
    return raised / raised.sum(1)[:, None]


def _laplace(xp: Any, u: Any) -> Any:
    around = xp.roll(u, 1, 0) + xp.roll(u, -1, 0) + xp.roll(u, 1, 1) + xp.roll(u, -1, 1)
    return around - 4 * u


def _distances(xp: Any, x: Any, y: Any) -> Any:
    apart = x[:, None, :] - y[None, :, :]
    return xp.sqrt((apart * apart).sum(2))


def _transposed(xp: Any, x: Any) -> Any:
    return x.T.copy()


_CASES: tuple[tuple[str, str, Callable[..., Any], Callable[[Draw], Inputs]], ...] = (
    ("exp_sin", "exp(x) sin(x) + 1", lambda xp, x: xp.exp(x) * xp.sin(x) + 1, _random((_MEBI,))),
    (
        "twice_plus_one",
        "2x + 1",
        lambda xp, x: 2 * x + 1,
        _random((4 * _MEBI,), dtype="float32"),
    ),
    ("total", "a sum", lambda xp, x: x.sum(), _random((4 * _MEBI,))),
    ("totals_of_columns", "sums of columns", lambda xp, x: x.sum(0), _random((2048, 1024))),
    ("variance", "a variance", lambda xp, x: xp.var(x), _random((_MEBI,))),
    ("softmax_rows", "softmax of rows", _softmax, _random((1024, 1024))),
    ("matrix_vector", "a @ x", lambda xp, a, x: a @ x, _random((1024, 1024), (1024,))),
    ("laplace", "a 5-point stencil by roll", _laplace, _random((1024, 1024))),
    ("laplace_small", "a 5-point stencil by roll", _laplace, _random((64, 64))),
    ("transposed", "a copy of the transpose", _transposed, _random((2048, 2048))),
    ("running_sum", "cumsum", lambda xp, x: xp.cumsum(x, 0), _random((_MEBI,))),
    ("place_of_largest", "argmax", lambda xp, x: xp.argmax(x), _random((_MEBI,))),
    ("gathered", "elements at random places", lambda xp, x, i: x[i], _anywhere),
    ("distances", "distances of points in space", _distances, _random((1024, 3), (1024, 3))),
    ("plus_one", "x + 1", lambda xp, x: x + 1, _random((10,))),
)


def _row(
    name: str, title: str, function: Callable[..., Any], inputs: Callable[[Draw], Inputs]
) -> Row:
    small = name in ("laplace_small", "plus_one", "matrix_vector")
    return Row(
        name=name,
        title=title,
        inputs=inputs,
        contestants=written_once(lambda xp, loops: partial(function, xp)),
        unit=MICROSECONDS if small else MILLISECONDS,
        devices=("host",),
    )


ROWS = tuple(_row(*case) for case in _CASES)
