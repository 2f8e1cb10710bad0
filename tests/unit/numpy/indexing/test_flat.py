"""`x.flat`: reads, writes and iteration, as in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph import errors

X = np.arange(6.0).reshape(2, 3)
LAYOUTS = {
    "rows": lambda x: x.copy(),
    "columns": lambda x: x.T.copy().T,
    "transposed": lambda x: x.copy().T,
    "reversed": lambda x: x.copy()[::-1],
    "part": lambda x: np.concatenate([x, x], axis=1)[:, 1:4],
}
STATIC: list[Any] = [
    0, -1, np.int64(2), slice(1, 4), slice(None, None, -2), [0, 2], [2, 0, 2],
    np.array([[0, 1], [2, 3]]), np.array([True, False] * 3), ..., (1,), [],
]  # fmt: skip
WRONG: list[Any] = [6, -7, [0, 6], (1, 2), None]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("index", [*STATIC, *WRONG], ids=repr)
def test_static_indices(layout: str, index: Any) -> None:
    def read(x: Any) -> Any:
        return LAYOUTS[layout](x).flat[index]

    def write(x: Any, value: Any = 9) -> Any:
        y = LAYOUTS[layout](x)
        z = y[...]
        y.flat[index] = value
        return y, z

    def write_several(x: Any) -> Any:
        return write(x, [7, 8])

    for function in (read, write, write_several):
        try:
            expected = function(X)
        except (IndexError, ValueError) as error:
            with pytest.raises(type(error)):
                tracegraph.jit(function, device="host")(X)
        else:
            found = tracegraph.jit(function, device="host")(X)
            np.testing.assert_array_equal(np.asarray(found), np.asarray(expected), strict=True)


@pytest.mark.parametrize("index", [3, -2, np.array([0, 4, 4]), np.array([[1], [2]])])
def test_traced_indices(index: Any) -> None:
    def f(x: Any, i: Any) -> Any:
        y = x.copy()
        y.flat[i] = -1
        return y, x.flat[i], x.T.flat[i]

    for found, expected in zip(
        tracegraph.jit(f, device="host")(X, index), f(X, index), strict=True
    ):
        np.testing.assert_array_equal(np.asarray(found), expected)


def test_masks() -> None:
    def f(x: Any) -> Any:
        y = x.copy()
        y.flat[np.ravel(x > 2)] = 0
        return y

    np.testing.assert_array_equal(tracegraph.jit(f, device="host")(X), f(X))
    with pytest.raises(errors.BooleanMaskError):
        tracegraph.jit(lambda x: x.flat[np.ravel(x > 2)], device="host")(X)


def test_all_elements() -> None:
    def f(x: Any) -> Any:
        y = x.copy().T
        y.flat = [1, 2]
        z = x.copy()
        z.flat[:: z.shape[1] + 1] = 5
        total = 0
        for k, element in enumerate(x.T.flat):
            total = total + k * element
        return y, z, total, len(x.flat), x.T.flat.copy()

    for found, expected in zip(tracegraph.jit(f, device="host")(X), f(X), strict=True):
        np.testing.assert_array_equal(np.asarray(found), expected)


def test_what_is_read_is_a_copy() -> None:
    def f(x: Any) -> Any:
        y = x.copy()
        part = y.flat[1:3]
        part[0] = 100
        y.flat[2] = 50
        return y, part

    for found, expected in zip(tracegraph.jit(f, device="host")(X), f(X), strict=True):
        np.testing.assert_array_equal(np.asarray(found), expected)


def test_arguments_and_arrays_are_not_written_to() -> None:
    def f(x: Any) -> Any:
        x.flat[0] = 1
        return x

    with pytest.raises(errors.TracerWriteError, match="argument x"):
        tracegraph.jit(f, device="host")(X)
    x = tracegraph.asarray(X)
    np.testing.assert_array_equal(np.asarray(x.flat[1:3]), [1, 2])
    assert [float(v) for v in x.flat] == [0, 1, 2, 3, 4, 5]
    for write in (lambda: x.flat.__setitem__(0, 1), lambda: setattr(x, "flat", 1)):
        with pytest.raises(errors.ImmutableArrayError):
            write()


def test_the_method_searchsorted() -> None:
    edges = np.array([0.0, 2.0, 4.0])
    expected = edges.searchsorted(X, "right")
    found = tracegraph.jit(lambda e, x: e.searchsorted(x, "right"), device="host")(edges, X)
    np.testing.assert_array_equal(np.asarray(found), expected, strict=True)
    np.testing.assert_array_equal(
        np.asarray(tracegraph.asarray(edges).searchsorted(X, "right")), expected
    )
