"""Writes to Arrays that the caller's code has made: as in traced functions, or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
import tracegraph.array_api as xp
from tracegraph import errors

A = tracegraph.asarray(np.arange(5.0))


def test_what_runs_in_jit_runs_eagerly() -> None:
    def f(a: Any) -> Any:
        x = a * 2
        x[0] = 7
        x[1:3] = a[:2]
        x[1:] = x[:-1]
        x[x > 6] = -1
        rows = a.__array_namespace__().zeros((2, 3))
        rows[0] += 1
        rows[:, 1] += a[3:]
        copy = x.copy()
        copy[...] = 0
        at = x.at[:].set(a)
        at[0] = 9
        return x, rows, copy, at

    for found, expected in zip(f(A), tracegraph.jit(f, device="host")(A), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(A, np.arange(5.0))


SHARED: dict[str, Callable[[Any], Any]] = {
    "view": lambda x: x[1:],
    "reshaped": lambda x: xp.reshape(x, (5, 1)),
    "transposed": lambda x: xp.reshape(x, (5, 1)).T,
    "ndarray": np.asarray,
    "numpy": lambda x: np.expand_dims(x, 0),
}


@pytest.mark.parametrize("share", SHARED)
def test_what_shares_memory_ends_writes_while_it_lives(share: str) -> None:
    x = A + 1
    other = SHARED[share](x)
    with pytest.raises(errors.ImmutableArrayError, match="share its memory"):
        x[0] = 9
    if isinstance(other, tracegraph.Array):
        with pytest.raises(errors.ImmutableArrayError):
            other[0] = 9
    del other
    x[0] = 9
    assert x.tolist() == [9, 2, 3, 4, 5]


def test_arguments_and_results_of_jitted_functions_are_read_only() -> None:
    for x in (A, tracegraph.asarray([1.0, 2.0]), tracegraph.jit(lambda x: x + 1)(A)):
        with pytest.raises(errors.ImmutableArrayError):
            x[0] = 1
    local = A + 1

    def captured(y: Any) -> Any:
        local[0] = 5
        return y

    with pytest.raises(errors.ImmutableArrayError):
        tracegraph.jit(captured, device="host")(A)


COPIES: dict[str, Callable[[Any], Any]] = {
    "astype": lambda x: xp.astype(x, x.dtype),
    "copy": np.copy,
    "tile": lambda x: xp.tile(x, (1,)),
    "roll": lambda x: xp.roll(x, 0),
    "block": lambda x: tracegraph.numpy.block(x),
    "repeat": lambda x: xp.repeat(x, 1),
    "at": lambda x: x.at[:].set(x),
    "constant": lambda x: tracegraph.jit(lambda: x + 0, device="host"),
    "residual": lambda x: tracegraph.vjp(lambda y: y * y, x)[1],
    "while_loop": lambda x: tracegraph.while_loop(lambda x: x[1] < 0, lambda x: x + 1, x),
}


@pytest.mark.parametrize("name", COPIES)
def test_what_was_computed_before_a_write_stays(name: str) -> None:
    def of(kept: Any) -> Any:
        if name == "residual":
            kept = kept(tracegraph.asarray(np.ones(5)))[0]
        return np.array(kept() if callable(kept) else kept)

    x = A + 1
    kept = COPIES[name](x)
    before = of(kept)
    x[1] = 100
    np.testing.assert_array_equal(of(kept), before)


@pytest.mark.parametrize("value", [2.0, np.ones(5), A], ids=["number", "ndarray", "Array"])
def test_an_update_of_all_elements_is_an_array_of_its_own(value: Any) -> None:
    x = A.at[:].set(value)
    assert isinstance(x, tracegraph.Array)
    x[0] = 9
    assert A[0] == 0
    assert np.asarray(x)[0] == 9
