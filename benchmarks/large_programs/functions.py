"""Functions that libraries have beyond those of arrays, under one spelling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Functions:
    """What large programs need besides a `Language`.

    `plus(x, where, value)` is x with a value added to a slice of it. `softmax` and `log_softmax`
    are along the last axis, `logsumexp(x, axis)` along any. `solve_lower(a, b)` solves a triangular
    system, `solve_tridiagonal(lower, diagonal, upper, b)` takes b with an axis of right sides at
    the end. `convolve(x, w)` slides windows of w (height, width, channels, results) over x (batch,
    height, width, channels) without padding. Those that a library does not have are None.
    """

    plus: Callable[[Any, Any, Any], Any]
    logsumexp: Callable[[Any, int], Any]
    softmax: Callable[[Any], Any]
    log_softmax: Callable[[Any], Any] | None = None
    solve_lower: Callable[[Any, Any], Any] | None = None
    solve_tridiagonal: Callable[[Any, Any, Any, Any], Any] | None = None
    convolve: Callable[[Any, Any], Any] | None = None


def functions_of(xp: ModuleType, traced: bool) -> Functions:
    """Those for arrays of NumPy, which may be `traced` by tracegraph, or of JAX."""
    if xp is not np:
        return _jax()
    return _tracegraph() if traced else _scipy()


def _plus_in_copy(x: Any, where: Any, value: Any) -> Any:
    x = x.copy()
    x[where] += value
    return x


def _tracegraph() -> Functions:
    import tracegraph

    def convolve(x: Any, w: Any) -> Any:
        windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[:2], axis=(1, 2))
        return np.einsum("nyxcij,ijco->nyxo", windows, w)

    return Functions(
        plus=_plus_in_copy,
        logsumexp=lambda x, axis: tracegraph.special.logsumexp(x, axis=axis),
        softmax=lambda x: tracegraph.special.softmax(x, axis=-1),
        log_softmax=lambda x: tracegraph.special.log_softmax(x, axis=-1),
        solve_lower=lambda a, b: tracegraph.linalg.solve_triangular(a, b, lower=True),
        solve_tridiagonal=tracegraph.linalg.tridiagonal_solve,
        convolve=convolve,
    )


def _jax() -> Functions:
    import jax

    def convolve(x: Any, w: Any) -> Any:
        layout = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=layout)

    return Functions(
        plus=lambda x, where, value: x.at[where].add(value),
        logsumexp=lambda x, axis: jax.scipy.special.logsumexp(x, axis=axis),
        softmax=jax.nn.softmax,
        log_softmax=jax.nn.log_softmax,
        solve_lower=lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True),
        solve_tridiagonal=jax.lax.linalg.tridiagonal_solve,
        convolve=convolve,
    )


def _scipy() -> Functions:
    from scipy import special

    return Functions(
        plus=_plus_in_copy,
        logsumexp=lambda x, axis: special.logsumexp(x, axis=axis),
        softmax=lambda x: special.softmax(x, axis=-1),
    )
