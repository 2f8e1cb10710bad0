"""What type checkers know of users' code: mypy and pyright check this page, and nothing runs it."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np

import tracegraph
from tracegraph import Array


def energy(x: Array, k: int = 1) -> Array:
    return (x * k).sum()


jitted = tracegraph.jit(energy)


@tracegraph.jit(static_argnames="k")
def scaled(x: Array, k: int) -> Array:
    return x * k


def scaled_by(i: Array, x: Array) -> Array:
    return x * i


def running(carry: Array, y: Array) -> tuple[Array, Array]:
    return carry + y, carry


def page(x: Array) -> None:
    assert_type(tracegraph.asarray([1.0, 2.0]), Array)
    assert_type(x + 1, Array)
    assert_type(1 - x @ x, Array)
    assert_type(x < 2, Array)
    assert_type(x[0], Array)
    assert_type(x.reshape(2, 3).T, Array)
    assert_type(x.dtype, np.dtype[Any])
    assert_type(jitted(x, k=2), Array)
    assert_type(scaled(x, 3), Array)
    assert_type(tracegraph.vmap(energy)(x), Array)
    assert_type(tracegraph.value_and_grad(energy)(x), tuple[Array, Any])
    assert_type(tracegraph.cond(x > 0, lambda: x, lambda: -x), Array)
    assert_type(tracegraph.while_loop(lambda x: x < 9, lambda x: x * 2, x), Array)
    assert_type(tracegraph.fori_loop(0, 3, scaled_by, x), Array)
    assert_type(tracegraph.scan(running, x, x), tuple[Array, Array])
    jitted(x, "k")  # type: ignore[arg-type]
    energy(np.ones(2))  # type: ignore[arg-type]
