"""Checked indices: what raises where NumPy raises, and which programs calls use."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from tests.corpus import CASES
from tests.helpers.traced import trace
from tracegraph import errors, tree

each_host = pytest.mark.usefixtures("each_host")

X = np.arange(12.0).reshape(3, 4)


def written(x: Any, index: Any) -> Any:
    y = x.copy()
    y[index] = 7
    return y


def added(x: Any, i: Any) -> Any:
    y = x.copy()
    np.add.at(y, i, 1)
    return y


def put(x: Any, i: Any) -> Any:
    y = x.copy()
    np.put(y, i, 3)
    return y


def put_along(x: Any, i: Any) -> Any:
    y = x.copy()
    np.put_along_axis(y, np.reshape(i, (1, -1)), 3, axis=0)
    return y


def through_a_view(x: Any, i: Any) -> Any:
    y = x.copy()
    y[i][1:] = 5
    return y


def ours(x: Any) -> Any:
    return x if hasattr(x, "at") else tracegraph.asarray(x)


Access = Callable[[Any, Any], Any]

OF_ROWS: dict[str, Access] = {
    "x[i]": lambda x, i: x[i],
    "x[i, 1]": lambda x, i: x[i, 1],
    "x[i, ::2]": lambda x, i: x[i, ::2],
    "x[1:, i]": lambda x, i: x.T[1:, i],
    "x[..., i, None]": lambda x, i: x.T[..., i, None],
    "x.T[1, i]": lambda x, i: x.T[1, i],
    "two indices": lambda x, i: x[i, i],
    "an array and an index": lambda x, i: x[[0, 1], i],
    "take": lambda x, i: np.take(x, i, axis=0),
    "method take": lambda x, i: x.take(i, 0),
    "written": written,
    "augmented": lambda x, i: added(x, i) + written(x, i),
    "through a view": through_a_view,
    "add.at": added,
    ".at": lambda x, i: ours(x).at[i].multiply(2),
    ".at divide": lambda x, i: ours(x).at[i].divide(2),
    ".at get": lambda x, i: ours(x).at[i].get(),
}
"""Accesses at an integer into the three rows of an array."""

OF_MANY: dict[str, Access] = {
    "x[i]": lambda x, i: x[i],
    "x[i, j]": lambda x, i: x[i, i[::-1]],
    "x[i[:, None], j]": lambda x, i: x[i[:, None], i],
    "take": lambda x, i: np.take(x, i, axis=0),
    "take_along_axis": lambda x, i: np.take_along_axis(x, np.reshape(i, (1, -1)), 0),
    "written": written,
    "add.at": added,
    "put_along_axis": put_along,
}
"""Accesses at four integers."""

FROM_ZERO: dict[str, Access] = {
    "choose": lambda x, i: np.choose(i, [x, x + 1, x + 2]),
    "choose rows": lambda x, i: np.choose(i, x),
    "ravel_multi_index": lambda x, i: np.ravel_multi_index((i, i), x.shape) + 0 * x[0, 0],
    "unravel_index": lambda x, i: np.unravel_index(i, (3,))[0] + 0 * x[0, 0],
    "reduceat": lambda x, i: np.add.reduceat(x, i, axis=0),
}
"""Functions of numbers below three, for which negative ones are out of range."""

RAVELLED: dict[str, Access] = {
    "put": put,
    "take": lambda x, i: np.take(x, i),
    "ravel": lambda x, i: np.ravel(x)[i],
}
"""Accesses to the twelve elements in one axis."""


def checked(function: Access, x: Any, i: Any) -> Any:
    with tracegraph.check_indices():
        return tracegraph.jit(function, device="host")(x, i)


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint8, np.uint64, None])
@pytest.mark.parametrize("index", [0, 2, -1, -3, 3, -4, 100])
@pytest.mark.parametrize("name", OF_ROWS)
def test_an_index_raises_where_numpys_does(name: str, index: int, dtype: Any) -> None:
    if index < 0 and dtype is not None and np.dtype(dtype).kind == "u":
        index = np.iinfo(dtype).max // 2  # NumPy casts greater ones to int64, where they wrap
    function, at = OF_ROWS[name], index if dtype is None else dtype(index)
    try:
        expected = function(X, at)
    except IndexError:
        with pytest.raises(errors.IndexRangeError, match=r"out of bounds for axis \d with size"):
            checked(function, X, at)
    else:
        np.testing.assert_array_equal(checked(function, X, at), expected)


@each_host
@pytest.mark.parametrize("indices", [[0, 1, 2, -3], [0, 1, 2, 3], [-4, 0, 1, 1]])
@pytest.mark.parametrize("name", OF_MANY)
def test_one_of_many_raises(name: str, indices: list[int]) -> None:
    function, at = OF_MANY[name], np.array(indices)
    if max(indices) < 3 and min(indices) >= -3:
        np.testing.assert_array_equal(checked(function, X, at), function(X, at))
        return
    with pytest.raises(IndexError):
        function(X, at)
    with pytest.raises(errors.IndexRangeError, match=r"i64.*axis 0 with size 3"):
        checked(function, X, at)


@each_host
@pytest.mark.parametrize("indices", [[0, 1, 2, 0], [0, 1, 2, 3], [0, 1, -1, 2]])
@pytest.mark.parametrize("name", FROM_ZERO)
def test_numbers_that_do_not_count_from_the_end(name: str, indices: list[int]) -> None:
    function, at = FROM_ZERO[name], np.array(indices)
    try:
        expected = function(X, at)
    except (IndexError, ValueError):
        with pytest.raises(errors.IndexRangeError, match="limited to it"):
            checked(function, X, at)
        tracegraph.jit(function, device="host")(X, at)
    else:
        np.testing.assert_array_equal(checked(function, X, at), expected)


@each_host
@pytest.mark.parametrize("name", RAVELLED)
def test_positions_in_the_ravelled_array(name: str) -> None:
    function = RAVELLED[name]
    inside, outside = np.array([11, -12, 0]), np.array([0, 12])
    np.testing.assert_array_equal(checked(function, X, inside), function(X, inside))
    with pytest.raises(errors.IndexRangeError, match="size 12"):
        checked(function, X, outside)


@each_host
@pytest.mark.parametrize(
    "function",
    [
        lambda x, i: np.take(x, i, 0, mode="clip"),
        lambda x, i: np.take(x, i, 0, mode="wrap"),
        lambda x, i: np.bincount(np.reshape(i, (1,)), minlength=2),
        lambda x, i: tracegraph.dynamic_slice(x, (i, 0), (2, 2)),
        lambda x, i: tracegraph.dynamic_update_slice(x, np.ones((2, 2)), (i, 0)),
        lambda x, i: np.roll(x, i, 0),
        lambda x, i: tnp.flatnonzero(x > i, size=20, fill_value=99),
        lambda x, i: tnp.repeat(x[0], np.reshape(i, (1,)), total_repeat_length=3),
        lambda x, i: np.interp(x[0] * i, x[1], x[2]),
    ],
)
def test_what_is_defined_beyond_the_ends_is_not_checked(function: Access) -> None:
    plain = tracegraph.jit(function, device="host")(X, 5)
    np.testing.assert_array_equal(checked(function, X, 5), plain)


@pytest.mark.parametrize("name", list(CASES)[::2])
def test_programs_without_such_indices_run_as_before(name: str) -> None:
    case = CASES[name]
    with tracegraph.check_indices():
        found = tracegraph.jit(case.function, device="host")(*case.arguments)
    plain = tracegraph.jit(case.function, device="host")(*case.arguments)
    for one, other in zip(tree.leaves(found), tree.leaves(plain), strict=True):
        np.testing.assert_array_equal(one, other)


@each_host
def test_the_message_has_the_index_and_the_line() -> None:
    def element(table: Any, k: Any) -> Any:
        return table[k]

    line = element.__code__.co_firstlineno + 1
    place = rf"at test_check_indices\.py:{line}, in element"
    text = rf"an index, .*i64\[2\] \(argument k\), .*such reads are clamped to it\n  {place}"
    with pytest.raises(errors.IndexRangeError, match=text):
        checked(element, X, np.array([0, 9]))
    with pytest.raises(errors.IndexRangeError, match="such writes are dropped"):
        checked(written, X, np.array(9))


@each_host
def test_indices_in_loops_and_branches() -> None:
    def summed(x: Any, n: Any) -> Any:
        return tracegraph.fori_loop(0, n, lambda i, s: s + x[i], 0.0)

    def gathered(x: Any, at: Any) -> Any:
        return tracegraph.scan(lambda c, i: (c + x[i], written(x, i)), 0.0, at)

    def taken(x: Any, i: Any) -> Any:
        return tracegraph.cond(i < 3, lambda: x[i], lambda: 0.0)

    def searched(x: Any, i: Any) -> Any:
        return tracegraph.while_loop(lambda i: i < 9, lambda i: i + 1 + 0 * x[i].astype(int), i)

    x = X[:, 0]
    assert checked(summed, x, 3) == x.sum()
    assert checked(taken, x, 5) == 0  # the branch is not run
    np.testing.assert_array_equal(checked(gathered, x, np.arange(3))[1][2], [0, 4, 7])
    for function, i in ((summed, 4), (gathered, np.array([0, 7])), (taken, -9), (searched, 0)):
        with pytest.raises(errors.IndexRangeError):
            checked(function, x, i)


@each_host
def test_the_condition_of_a_loop_needs_an_exemption() -> None:
    def chased(x: Any, i: Any) -> Any:
        return tracegraph.while_loop(lambda i: x[i] > i, lambda i: x[i], i)

    def exempted(x: Any, i: Any) -> Any:
        def goes_on(i: Any) -> Any:
            with tracegraph.check_indices(False):
                return x[i] > i

        return tracegraph.while_loop(goes_on, lambda i: x[i], i)

    x = np.array([2, 0, 3, 3])
    with pytest.raises(errors.EffectInConditionError, match=r"check_indices\(False\) exempts it"):
        checked(chased, x, 0)
    assert checked(exempted, x, 0) == 3
    with pytest.raises(errors.IndexRangeError):
        checked(exempted, np.array([20, 0, 30]), 0)


@each_host
def test_programs_of_calls_inside_and_outside_are_two() -> None:
    element = tracegraph.jit(lambda x, i: x[i], device="host")
    for _ in range(2):
        assert element(X[0], 9) == 3
        with tracegraph.check_indices():
            assert element(X[0], 2) == 2
            with pytest.raises(errors.IndexRangeError):
                element(X[0], 9)
            with tracegraph.check_indices(False):
                assert element(X[0], 9) == 3
            with tracegraph.deterministic(), pytest.raises(errors.IndexRangeError):
                element(X[0], 9)
    stats = element.stats()
    assert stats["traces"] == 3
    assert stats["retraces"] == (
        "checked_indices: False -> True",
        "deterministic: False -> True",
    )


@each_host
def test_static_indices_cost_nothing() -> None:
    with tracegraph.check_indices():
        program = trace(lambda x: (x[1], x[[0, 2]], x[1:], written(x, 1)), X)
    assert not re.search("require", str(program))
    with tracegraph.check_indices():
        assert "require" in str(trace(lambda x, i: x[i], X, 1))


@each_host
def test_arrays_raise_as_before() -> None:
    with tracegraph.check_indices(), pytest.raises(IndexError, match="out of bounds"):
        tracegraph.asarray(X)[3]
