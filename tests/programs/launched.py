"""Programs whose graphs have nodes besides kernels, beyond those of the corpus."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import tracegraph

MATRIX = np.eye(256)
LONG = np.linspace(1.0, 0.0, 100_000)


def power(x: Any, y: Any, n: Any) -> Any:
    return tracegraph.fori_loop(0, n, lambda i, c: c * x + y, x) + y


def product_in_a_loop(x: Any, y: Any, n: Any) -> Any:
    return tracegraph.fori_loop(0, n, lambda i, c: (c @ y) / 2, x)


def sorted_in_a_branch(x: Any, n: Any) -> Any:
    return tracegraph.cond(n > 0, lambda x: np.sort(x)[::-1] * n, lambda x: x - n, x)


def many_arguments(*arguments: Any) -> Any:
    """More addresses than fit in one table kernel."""
    *rows, n = arguments
    return tracegraph.fori_loop(0, n, lambda i, c: sum(rows, c), rows[0])


def timed(x: Any, n: Any) -> Any:
    with tracegraph.debug.timed("scaling"):
        x = x * n
    return np.cumsum(x)


def factored(x: Any, n: Any) -> Any:
    return np.linalg.cholesky(x * n), np.fft.fft(x)


def either(x: Any, n: Any) -> Any:
    def branches(i: Any, c: Any) -> Any:
        return tracegraph.switch(i % 3, [np.sin, lambda c: c @ c, lambda c: c * n], c)

    return tracegraph.fori_loop(0, n, branches, x)


PROGRAMS: Mapping[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "power": (power, (LONG, LONG, 3)),
    "product_in_a_loop": (product_in_a_loop, (MATRIX, MATRIX, 3)),
    "sorted_in_a_branch": (sorted_in_a_branch, (LONG, 2)),
    "sorted_short": (lambda x, n: np.sort(x) + n, (LONG[:20], 1)),
    "many_arguments": (many_arguments, (*[LONG[:1000]] * 390, *[2.0] * 2, 3)),
    "many_numbers": (lambda *numbers: sum(numbers), (*map(float, range(400)),)),
    "timed": (timed, (LONG, 2)),
    "factored": (factored, (MATRIX, 2.0)),
    "either": (either, (MATRIX, 6)),
    "copied": (lambda x: x, (LONG,)),
    "constant": (lambda x: np.ones(3), (LONG,)),
    "empty": (lambda x: x + 1, (np.zeros((0, 3)),)),
}
"""By name, the function and arguments for it."""
