"""Functions that find, choose and rearrange elements: under jit on the host, and in loops."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from tests.cases import selecting as selecting_cases
from tests.helpers.compiled import on_host
from tests.helpers.numpy_agreement import assert_close
from tests.helpers.numpy_arguments import ARGUMENTS
from tracegraph import errors, tree


def in_a_loop(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function in the body of a loop, whose second step gives the result."""

    def run(*args: Any) -> Any:
        first = tree.map(tnp.zeros_like, function(*args))
        return tracegraph.fori_loop(0, 2, lambda k, _: function(*args), first)

    return run


@pytest.mark.parametrize("expression", selecting_cases.TABLES)
def test_expressions_equal_numpys(expression: str) -> None:
    used = {k: v for k, v in ARGUMENTS.items() if re.search(rf"\b{k}\b", expression)}
    code = compile(expression, expression, "eval")

    def function(*values: Any) -> Any:
        return eval(code, {"xp": tnp, "np": np, **dict(zip(used, values, strict=True))})

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = tree.leaves(eval(code, {"xp": np, "np": np, **used}))
        for run in (function, in_a_loop(function)):
            results = tree.leaves(tracegraph.jit(run, device="host")(*used.values()))
            for got, wanted in zip(
                map(np.asarray, results), map(np.asarray, expected), strict=True
            ):
                assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
                assert_close(got, wanted)


def test_repeats_may_be_traced_with_a_total_length() -> None:
    x = np.arange(12.0).reshape(3, 4)
    for counts in ([1, 2, 3], [0, 5, 0], [0, 0, 0], [4, 0, 0]):
        whole = np.repeat(x, counts, axis=0)
        for length in (0, 1, len(whole), len(whole) + 3):
            last = whole[-1:] if sum(counts) else x[-1:]  # the last fills what is missing
            last = x[-1:] if length > len(whole) else last
            missing = np.repeat(last, max(length - len(whole), 0), axis=0)
            wanted = np.concatenate([whole[:length], missing])

            def repeated(x: Any, n: Any, length: int = length) -> Any:
                return tnp.repeat(x, n, 0, total_repeat_length=length)

            got = on_host(repeated, x, np.array(counts, np.int32))
            np.testing.assert_array_equal(got, wanted)
            np.testing.assert_array_equal(repeated(x, counts), wanted)
    scalar = on_host(lambda x, n: tnp.repeat(x, n, total_repeat_length=6), x[0, :2], 3)
    np.testing.assert_array_equal(scalar, [0, 0, 0, 1, 1, 1])


def test_traced_repeats_need_a_total_length() -> None:
    with pytest.raises(errors.ShapeDependentError, match="total_repeat_length=n"):
        on_host(np.repeat, np.arange(3), np.array([1, 2, 3]))
    with pytest.raises(ValueError, match="one count for each of the 3"):
        on_host(lambda x, n: tnp.repeat(x, n, total_repeat_length=4), np.arange(3), np.arange(2))


def both(function: Callable[[Any], Any], x: Any) -> list[Any]:
    return [np.asarray(function(tracegraph.asarray(x))), on_host(function, x)]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "int64", "uint64"])
def test_known_repeats_have_any_integer_dtype(dtype: str) -> None:
    for length, counts in ((3, [1, 0, 1]), (3, [1]), (0, [])):
        x, n = np.arange(float(length)), np.array(counts, dtype)
        for got in both(partial(tnp.repeat, repeats=n), x):
            np.testing.assert_array_equal(got, np.repeat(x, n.astype(np.int64)))


@pytest.mark.parametrize("counts", [[2], [1, 2, 3], 2])
def test_repeats_in_floats_are_refused(counts: Any) -> None:
    wrong = np.array(counts, np.float64)
    for x in (np.arange(3), tracegraph.asarray(np.arange(3))):
        with pytest.raises(TypeError, match=r"integers|safe"):
            tnp.repeat(x, wrong)
    with pytest.raises(TypeError, match="integers, got float64"):
        on_host(lambda x: tnp.repeat(x, wrong), np.arange(3))


@pytest.mark.parametrize("counts", [-1, [-1], [1, 2, -1]])
def test_negative_repeats_are_refused(counts: Any) -> None:
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        tnp.repeat(tracegraph.asarray(np.arange(3)), counts)
    with pytest.raises(ValueError, match="must fit in int64, got 9223372036854775808"):
        tnp.repeat(tracegraph.asarray(np.arange(3)), np.array([2**63], np.uint64))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64"])
def test_counts_of_integers(dtype: str) -> None:
    x = (np.arange(40) % 7).astype(dtype)
    weights = np.arange(40.0, dtype=np.float32)
    for given in (None, weights):
        wanted = np.bincount(x, given, 8)
        got = on_host(lambda x, w: np.bincount(x, w, minlength=8), x, given)
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted)
        limited = on_host(lambda x, w: tnp.bincount(x, w, length=3), x, given)
        np.testing.assert_array_equal(limited, wanted[:3])
        np.testing.assert_array_equal(tnp.bincount(x, given, length=3), wanted[:3])
        np.testing.assert_array_equal(
            np.asarray(tnp.bincount(tracegraph.asarray(x))), np.bincount(x)
        )


def test_integers_outside_of_the_length_are_not_counted() -> None:
    got = on_host(lambda x: np.bincount(x, minlength=3), np.array([0, 5, -1, 2, 3, -3]))
    np.testing.assert_array_equal(got, [1, 0, 1])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: np.bincount(x), errors.ShapeDependentError, "length=n"),
        (lambda x: np.bincount(x * 1.0, minlength=3), TypeError, "float64"),
        (lambda x: np.bincount(x[None], minlength=3), ValueError, "one axis"),
        (lambda x: np.bincount(x, x[:2], minlength=3), ValueError, "same length"),
        (lambda x: np.bincount(x, minlength=-1), ValueError, "not be negative"),
        (lambda x: np.bincount(x, x * 1j, minlength=3), TypeError, "complex128"),
        (lambda x: np.choose(x * 1.0, [x, x]), TypeError, "float64"),
        (lambda x: np.choose([0, 5], [x[:2], x[:2]]), ValueError, "invalid entry"),
        (lambda x: np.choose(x, []), ValueError, "at least one"),
        (lambda x: np.choose(x, [x], mode="other"), ValueError, "other"),
        (lambda x: np.choose(x, [x, x[:2]]), ValueError, "shapes"),
        (lambda x: np.piecewise(x, [x > 0], [1, 2, 3]), ValueError, "functions are expected"),
        (lambda x: np.piecewise(x, [x[:2] > 0], [1]), IndexError, "boolean index"),
        (lambda x: np.insert(x, x > 1, 1), errors.ShapeDependentError, "numpy.insert"),
        (lambda x: np.insert(x, 9, 1), IndexError, "out of bounds"),
        (lambda x: np.insert(x, [1, 9], 1), IndexError, "out of bounds"),
        (lambda x: np.insert(x, [1, 2], [1, 2, 3]), ValueError, "broadcast"),
        (lambda x: np.delete(x, x), errors.ShapeDependentError, "numpy.delete"),
        (lambda x: np.delete(x, 9), IndexError, "out of bounds"),
        (lambda x: np.resize(x, -1), ValueError, "non-negative"),
        (lambda x: np.block([[x], x]), ValueError, "mismatched"),
        (lambda x: np.block([[x], []]), ValueError, "empty"),
        (lambda x: np.block((x, x)), TypeError, "tuple"),
        (lambda x: (*np.unravel_index([9], (2, 3)), x), ValueError, "out of bounds"),
        (lambda x: np.unravel_index(x * 1.0, (2, 3)), TypeError, "float64"),
        (lambda x: np.unravel_index(x, (2, 3), "X"), ValueError, "order"),
        (lambda x: np.ravel_multi_index((x, [7, 7, 7]), (2, 3)), ValueError, "invalid entry"),
        (lambda x: np.ravel_multi_index((x, x), (2, 3, 4)), ValueError, "one array"),
        (lambda x: np.ravel_multi_index((x, x * 0.5), (2, 3)), TypeError, "float64"),
        (lambda x: np.ix_(x > 1), errors.ShapeDependentError, "flatnonzero"),
        (lambda x: np.ix_(x[None]), ValueError, "one axis"),
        (lambda x: np.roll(x[None], x, (0, 1)), ValueError, "broadcast"),
        (lambda x: tnp.r_["q", x], ValueError, "special directive"),
        (lambda x: tnp.r_["r", x], errors.UnsupportedByTracerError, "matrix"),
        (lambda x: tnp.r_[0 : x[0]], errors.TracerIndexError, "numpy.arange"),
    ],
)
def test_errors(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        on_host(call, np.array([0, 1, 2]))


def test_traced_indices_out_of_range_are_limited() -> None:
    x = np.array([-7, 1, 99])
    np.testing.assert_array_equal(
        on_host(lambda x: np.unravel_index(x, (2, 3)), x), [[0, 0, 1], [0, 1, 2]]
    )
    np.testing.assert_array_equal(
        on_host(lambda x: np.ravel_multi_index((x, x), (2, 3)), x), [0, 4, 5]
    )
    np.testing.assert_array_equal(on_host(lambda x: np.choose(x, [10, 20]), x), [10, 20, 20])


def test_builders_without_traced_values_are_numpys() -> None:
    assert type(tnp.r_[1, 2]) is np.ndarray
    np.testing.assert_array_equal(tnp.c_[np.arange(2), np.arange(2)], np.c_[0:2, 0:2])
    np.testing.assert_array_equal(np.asarray(tnp.r_[tracegraph.asarray([1, 2]), 3]), [1, 2, 3])
    assert tnp.mgrid is np.mgrid
    assert tnp.s_[1:2] == slice(1, 2)


def test_functions_of_arrays_are_eager() -> None:
    x = tracegraph.asarray(np.arange(6).reshape(2, 3))
    given = np.asarray(x)
    for function in (
        lambda xp, x: xp.choose(x % 2, [x, -x]),
        lambda xp, x: xp.insert(x, 1, 9, axis=1),
        lambda xp, x: xp.delete(x, 1, axis=1),
        lambda xp, x: xp.resize(x, (4, 4)),
        lambda xp, x: xp.block([[x], [x]]),
        lambda xp, x: xp.unravel_index(x, (2, 3))[1],
        lambda xp, x: xp.ravel_multi_index((x % 2, x % 3), (2, 3)),
        lambda xp, x: xp.piecewise(x, [x > 2], [lambda v: -v, 7]),
        lambda xp, x: xp.bincount(xp.ravel(x) % 3),
        lambda xp, x: xp.ix_(x[0], x[1])[0],
    ):
        got = function(tnp, x)
        assert isinstance(got, tracegraph.Array)
        np.testing.assert_array_equal(np.asarray(got), function(np, given))


MASK = np.array([True, False, True])
V = np.array([5, 6, 7])


def put_along(x: Any, i: Any) -> Any:
    y = x.copy()
    np.put_along_axis(y, i, 4, 0)
    return y


def put(x: Any, i: Any) -> Any:
    y = x.copy()
    np.put(y, i, 4)
    return y


INDEXED: dict[str, Callable[[Any, Any], Any]] = {
    "take": np.take,
    "take wrapped": lambda x, i: np.take(x, i, mode="wrap"),
    "take clipped": lambda x, i: np.take(x, i, mode="clip"),
    "take in an unknown mode": lambda x, i: np.take(x, i, mode="nearest"),
    "take_along_axis": lambda x, i: np.take_along_axis(x, i, 0),
    "put": put,
    "put_along_axis": put_along,
}


@pytest.mark.parametrize("name", INDEXED)
@pytest.mark.parametrize(
    "indices", [MASK, MASK.astype(np.float32), MASK.astype(np.uint64), np.int8([-1, 0, 2])]
)
@pytest.mark.parametrize("static", [True, False])
def test_indices_of_any_dtype(name: str, indices: Any, static: bool) -> None:
    """Booleans are numbers here, no masks; what NumPy does not take raises, too."""
    function = INDEXED[name]
    if static:
        traced = tracegraph.jit(lambda x: function(x, indices), device="host")
        arguments: tuple[Any, ...] = (V,)
    else:
        traced, arguments = tracegraph.jit(function, device="host"), (V, indices)
    try:
        expected = function(V, indices)
    except (TypeError, IndexError, ValueError) as error:
        with pytest.raises((type(error), TypeError)) as caught:  # a bad dtype is found first
            traced(*arguments)
        assert str(caught.value)
    else:
        np.testing.assert_array_equal(np.asarray(traced(*arguments)), expected, strict=True)
