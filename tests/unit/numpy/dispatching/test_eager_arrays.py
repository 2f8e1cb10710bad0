"""Outside of traced functions, new arrays of `tracegraph.numpy` are NumPy's, with `.at`."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp

CALLS = {
    "zeros": lambda: tnp.zeros(3),
    "ones": lambda: tnp.ones((2, 3)),
    "full": lambda: tnp.full(3, 2.5),
    "empty": lambda: tnp.zeros_like(tnp.empty(3)),
    "arange": lambda: tnp.arange(1, 4),
    "eye": lambda: tnp.eye(3),
    "identity": lambda: tnp.identity(2),
    "tri": lambda: tnp.tri(3),
    "linspace": lambda: tnp.linspace(0, 1, 3),
    "zeros_like": lambda: tnp.zeros_like(np.ones(3, np.int8)),
    "array": lambda: tnp.array([1, 2, 3]),
}


@pytest.mark.parametrize("name", CALLS)
def test_new_arrays_have_at(name: str) -> None:
    x = CALLS[name]()
    before = np.array(x)
    y = x.at[0].set(7).at[1:].add(1).at[x > 100].multiply(2)
    np.testing.assert_array_equal(x, before)
    expected = before.copy()
    expected[0] = 7
    expected[1:] += 1
    np.testing.assert_array_equal(y, expected, strict=True)
    assert isinstance(x, np.ndarray)
    assert repr(x) == repr(before)


def test_they_are_numpys_otherwise() -> None:
    x = tnp.zeros(3)
    x += 1
    x[0] = 5
    assert type(x + 1) is np.ndarray
    assert type(np.sum(x)) is np.float64
    assert type(x[0]) is np.float64
    assert x[1:].at[0].get() == 1
    assert type(pickle.loads(pickle.dumps(x))) is np.ndarray
    np.testing.assert_array_equal(copy.deepcopy(x), [5, 1, 1])
    with pytest.raises(IndexError):
        x.at[3].set(1)
    np.testing.assert_array_equal(tracegraph.jit(lambda x: x * 2, device="host")(x), [10, 2, 2])
    np.testing.assert_array_equal(tracegraph.asarray(x), x)


def test_a_function_with_at_runs_under_numpy_as_it_is() -> None:
    def f(x: Any) -> Any:
        counts = tnp.zeros(4, dtype=int).at[x].add(1)
        return counts.at[counts > 1].set(9)

    x = np.array([0, 1, 1, 3])
    np.testing.assert_array_equal(f(x), [1, 9, 0, 1])
    np.testing.assert_array_equal(tracegraph.jit(f, device="host")(x), f(x))


def test_an_update_by_an_array_of_ours_is_one_of_ours() -> None:
    value = tracegraph.asarray(np.float64(2.5), device="host")
    found = tnp.zeros(3).at[1].set(value).at[2].add(value)
    assert type(found) is tracegraph.Array
    np.testing.assert_array_equal(found, [0, 2.5, 2.5])
