"""Writes to Arrays that the caller's code has made: as in traced functions, or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
import tracegraph.array_api as xp
from tests.fakes.fake_device import FakeBuffer
from tracegraph import errors
from tracegraph.arrays.array import Array

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


VIEWS: dict[str, Callable[[Any], Any]] = {
    "view": lambda x: x[:],
    "reshaped": lambda x: xp.reshape(x, (5, 1))[:, 0],
    "transposed": lambda x: xp.reshape(x, (5, 1)).T[0],
    "numpy": lambda x: np.expand_dims(x, 0)[0],
    "real": lambda x: x.real,
    "itself": tracegraph.asarray,
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_write_changes_the_base_and_its_views(view: str) -> None:
    x = A + 1
    other = VIEWS[view](x)
    x[0] = 9
    other[1] = 8
    other += 1
    assert x.tolist() == other.tolist() == [10, 9, 4, 5, 6]


READ_ONLY: dict[str, Callable[[Any], Any]] = {
    "broadcast_to": lambda x: np.broadcast_to(x, (2, 5))[0],
    "same shape": lambda x: tracegraph.numpy.broadcast_to(x, (5,)),
    "diagonal": lambda x: (x[:, None] * x).diagonal(),
    "windows": lambda x: np.lib.stride_tricks.sliding_window_view(x, 2)[0],
    "imag": lambda x: x.imag,
    "of an ndarray": lambda x: np.broadcast_arrays(x, np.ones(5))[1],
    "of an argument": lambda x: A[1:],
}


@pytest.mark.parametrize("view", READ_ONLY)
def test_views_that_are_read_only_in_numpy_are_read_only(view: str) -> None:
    found = READ_ONLY[view](A + 1)
    before = found.tolist()
    for write in (lambda: found.fill(3), lambda: np.add(1, 1, out=found)):
        with pytest.raises(errors.ImmutableArrayError):
            write()
    assert found.tolist() == before


def test_an_ndarray_of_an_array_is_a_read_only_view() -> None:
    x = A + 1
    y = np.asarray(x)
    x[0] = 9
    assert y[0] == 9
    with pytest.raises(ValueError, match="read-only"):
        y[0] = 1


def test_what_another_library_has_is_read_only() -> None:
    x = A + 1
    view = x[1:]
    np.from_dlpack(x)
    for each in (x, view, x[1:]):
        with pytest.raises(errors.ImmutableArrayError):
            each[0] = 1


def test_in_place_operators_rebind_what_is_read_only() -> None:
    x = y = tracegraph.asarray([1.0, 2.0])
    x += 1
    assert (x.tolist(), y.tolist()) == ([2, 3], [1, 2])
    x = y = A + 0
    x += 1
    assert x is y
    with pytest.raises(errors.InPlaceCastError):
        x += 1j


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


def test_copies_and_carries_of_immutable_arrays_may_be_written_to() -> None:
    def body(i: Any, x: Any) -> Any:
        x[i] = 9
        return x

    for found in (
        tracegraph.numpy.copy(A),
        A.astype(A.dtype),
        tracegraph.grad(lambda x: (x * x).sum())(A) / 2,
        tracegraph.fori_loop(1, 2, body, A),
    ):
        found[1] = 9
        assert found.tolist() == [0, 9, 2, 3, 4]
    assert A.tolist() == [0, 1, 2, 3, 4]


def test_a_failed_call_gives_a_donated_array_back_as_writable_as_it_was() -> None:
    x = A + 0
    with pytest.raises(errors.DonatedArrayError):
        tracegraph.jit(lambda x, y: x + y, donate_argnums=0, device="host")(x, x)
    x[0] = 9
    assert x.tolist() == [9, 1, 2, 3, 4]


@pytest.mark.usefixtures("compiler")
def test_a_donated_base_ends_its_views_on_a_device() -> None:
    x = Array(FakeBuffer(np.arange(5.0), "fake:0")) + 0
    view, other = x[1:], x[2:]
    view += 1  # the other view is computed again when it is read
    assert other.tolist() == [3, 4, 5]
    view[0] = 7
    tracegraph.jit(lambda x: x, donate_argnums=0)(x)
    with pytest.raises(errors.DonatedArrayError):
        np.asarray(view)
    with pytest.raises(errors.DonatedArrayError):
        view[0] = 1
