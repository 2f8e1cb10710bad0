"""Functions that write to their first argument: put, place, putmask, put_along_axis, fill_diagonal.

Each case is run by NumPy, under jit on the host, and in the body of a loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from tracegraph import errors

X = np.arange(12).reshape(3, 4) - 5
DTYPES = ["bool", "int8", "uint32", "int64", "float16", "float32", "float64", "complex128"]
ROWS = np.array([[0, 3], [1, 1], [2, 0]])

Write = Callable[..., Any]

# y is written to; v and i are vectors of four numbers, m a mask; all of them are traced
CASES: dict[str, Write] = {
    "put": lambda y, v, i, m: np.put(y, [0, 5, 5, -1], v),
    "put repeated": lambda y, v, i, m: np.put(y, [1, 2, 3, 4, 5, 6], v[:2]),
    "put fewer": lambda y, v, i, m: np.put(y, [[1, 2]], v),
    "put traced": lambda y, v, i, m: np.put(y, i, v),
    "put wrap": lambda y, v, i, m: np.put(y, i * 7, v, mode="wrap"),
    "put clip": lambda y, v, i, m: np.put(y, i * 7, v, mode="clip"),
    "put one": lambda y, v, i, m: np.put(y, i, v[0]),
    "put nothing": lambda y, v, i, m: (np.put(y, [], v), np.put(y, i, [])),
    "put as a method": lambda y, v, i, m: y.put([0, 5], v),
    "put in a view": lambda y, v, i, m: np.put(y[1:, ::2], i % 4, v),
    "put in a transposed view": lambda y, v, i, m: np.put(y.T, i, v),
    "putmask": lambda y, v, i, m: np.putmask(y, m, v),
    "putmask whole": lambda y, v, i, m: np.putmask(y, m, y[::-1]),
    "putmask static": lambda y, v, i, m: np.putmask(y, np.eye(3, 4), v[:3]),
    "putmask numbers": lambda y, v, i, m: np.putmask(y, y, 1),
    "putmask nothing": lambda y, v, i, m: np.putmask(y, m, []),
    "place": lambda y, v, i, m: np.place(y, m, v),
    "place one": lambda y, v, i, m: np.place(y, m, [1]),
    "place many": lambda y, v, i, m: np.place(y, y, np.arange(20).tolist()),
    "place flat": lambda y, v, i, m: np.place(y[0], m[0], v[1:3]),
    "along 1": lambda y, v, i, m: np.put_along_axis(y, ROWS, 1, axis=1),
    "along 1 traced": lambda y, v, i, m: np.put_along_axis(y, i[None, :3] % 4, v[:3], axis=1),
    "along 0": lambda y, v, i, m: np.put_along_axis(y, i[None] % 3, v, axis=0),
    "along -1": lambda y, v, i, m: np.put_along_axis(y, i[:3, None] % 4, v[:3, None], -1),
    "fill": lambda y, v, i, m: np.fill_diagonal(y, 1),
    "fill several": lambda y, v, i, m: np.fill_diagonal(y, v[:2]),
    "fill many": lambda y, v, i, m: np.fill_diagonal(y, y[:, ::-1]),
    "fill nothing": lambda y, v, i, m: np.fill_diagonal(y, []),
    "fill tall": lambda y, v, i, m: np.fill_diagonal(y.T, v),
    "mask": lambda y, v, i, m: y.__setitem__(m, v[1]),
    "mask rows": lambda y, v, i, m: y.__setitem__(m[:, 0], v),
}


def written(write: Write) -> Callable[..., Any]:
    def function(x: Any, v: Any, i: Any, m: Any) -> Any:
        y = x.copy()
        write(y, v, i, m)
        return y

    return function


def in_a_loop(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(x: Any, v: Any, i: Any, m: Any) -> Any:
        return tracegraph.fori_loop(0, 2, lambda _, y: function(y, v, i, m), x)

    return run


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CASES)
def test_writes_equal_numpys(name: str, dtype: str) -> None:
    x = (X if dtype != "uint32" else X + 5).astype(dtype)
    arguments = (
        x,
        np.array([7, 3, 2, 9]).astype(dtype),
        np.array([4, 0, 11, 4]),
        np.array(X % 3 == 0),
    )
    once = written(CASES[name])
    wanted = once(*arguments)
    before = x.copy()
    got = np.asarray(tracegraph.jit(once, device="host")(*arguments))
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got, wanted)
    twice = tracegraph.jit(in_a_loop(once), device="host")
    np.testing.assert_array_equal(np.asarray(twice(*arguments)), once(wanted, *arguments[1:]))
    np.testing.assert_array_equal(x, before)


def jitted(write: Write) -> Callable[..., Any]:
    return tracegraph.jit(
        lambda x, *args: (y := x.copy(), write(y, *args))[0],  # the written y
        device="host",
    )


def test_values_are_converted_as_in_assignments() -> None:
    for write in (
        lambda y, v: np.put(y, [0, 1], v),
        lambda y, v: np.putmask(y, y > 1, [1.5, 2.5]),
        lambda y, v: np.place(y, y > 1, 1.5),
        lambda y, v: np.put_along_axis(y, np.array([[1]]), v[:1], 1),
        lambda y, v: np.fill_diagonal(y, v),
    ):
        wanted = X.copy()
        write(wanted, np.array([1.5, -2.5]))
        np.testing.assert_array_equal(np.asarray(jitted(write)(X, np.array([1.5, -2.5]))), wanted)


def test_cubes_and_tall_matrices() -> None:
    for shape, wrap in (((3, 3, 3), False), ((7, 3), True), ((7, 3), False), ((2, 5), True)):
        wanted = np.zeros(shape)
        np.fill_diagonal(wanted, [4, 5], wrap)
        got = jitted(lambda y, wrap=wrap: np.fill_diagonal(y, [4, 5], wrap))(np.zeros(shape))
        np.testing.assert_array_equal(np.asarray(got), wanted)


def test_a_ravelled_array_is_written_to_without_an_axis() -> None:
    got = jitted(lambda y, i: tnp.put_along_axis(y, i, 9, None))(X, np.array([1, 6]))
    wanted = X.copy()
    wanted.flat[[1, 6]] = 9
    np.testing.assert_array_equal(np.asarray(got), wanted)


def test_traced_positions_out_of_range_write_nothing() -> None:
    got = jitted(lambda y, i: np.put(y, i, 99))(X, np.array([-20, 1, 12]))
    wanted = X.copy()
    wanted.flat[1] = 99
    np.testing.assert_array_equal(np.asarray(got), wanted)


@pytest.mark.parametrize(
    ("write", "error", "message"),
    [
        (lambda y: np.put(y, [12], 1), IndexError, "index 12 is out of bounds"),
        (lambda y: np.put(y, [0], 1, mode="other"), ValueError, "other"),
        (lambda y: np.put(y[:0], [0], 1), IndexError, "empty array"),
        (lambda y: np.putmask(y, [True], 1), ValueError, "same size"),
        (lambda y: np.putmask(y, y > 0, y * 1.5), TypeError, "'safe'"),
        (lambda y: np.place(y, y > 0, y * 1.5), TypeError, "'safe'"),
        (lambda y: np.place(y, y > 0, []), ValueError, "empty array"),
        (lambda y: np.place(y, [True], 1), ValueError, "same size"),
        (lambda y: np.put_along_axis(y, np.array([0]), 1, 1), ValueError, "number of dimensions"),
        (lambda y: np.put_along_axis(y, np.array([[9]]), 1, 1), IndexError, "out of bounds"),
        (lambda y: np.fill_diagonal(y[0], 1), ValueError, "at least 2-d"),
        (lambda y: np.fill_diagonal(y[None], 1), ValueError, "equal length"),
    ],
)
def test_errors_are_numpys(write: Write, error: type[Exception], message: str) -> None:
    with pytest.raises(error):
        write(X.copy())
    with pytest.raises(error, match=message):
        jitted(write)(X)


@pytest.mark.parametrize(
    "write",
    [
        lambda y, v: tnp.put(y, [0], v),
        lambda y, v: tnp.putmask(y, [True, False], v),
        lambda y, v: tnp.place(y, [True, False], v),
        lambda y, v: tnp.put_along_axis(y, np.array([0]), v, 0),
        lambda y, v: tnp.fill_diagonal(y, v),
        lambda y, v: tnp.copyto(y, v),
    ],
)
def test_only_local_arrays_are_written_to(write: Write) -> None:
    def to_constant(v: Any) -> Any:
        write(np.zeros(2), v)
        return v

    with pytest.raises(errors.UnsupportedByTracerError, match=r"tracegraph\.numpy\.zeros"):
        tracegraph.jit(to_constant, device="host")(1.0)
    with pytest.raises(errors.TracerWriteError):
        tracegraph.jit(lambda y: write(y, 1.0), device="host")(np.zeros(2))
    with pytest.raises(errors.ImmutableArrayError, match="is immutable: "):
        write(tracegraph.asarray(np.zeros(2)), 1.0)
