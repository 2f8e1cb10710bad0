"""Repeated calls of a jitted function: the entry made for earlier ones takes its own calls only."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import pytest

import tracegraph
from tests.helpers.threads import in_threads
from tracegraph import errors
from tracegraph.staging.calls.fast_call import MOST_LEAVES

pytestmark = pytest.mark.usefixtures("each_host")


def scaled(x, a):
    return x * a + 1


def calls():
    """Arguments that differ from one another in one thing each, and the traces that they need."""
    x = np.arange(6, dtype=np.float32)
    other = np.dtype(np.float32).newbyteorder("=")  # equal to x.dtype, and perhaps another object
    yield (x, np.float32(2) * np.ones((), np.float32)), 1
    yield (x.view(other), np.full((), 3, np.float32)), 1
    yield (x[::-1], np.full((), 3, np.float32)), 1
    yield (tracegraph.asarray(x, device="host"), np.full((), 3, np.float32)), 1
    yield (x, 2.0), 2
    yield (tracegraph.asarray(x, device="host"), 2.5), 2
    yield (x, 2), 3
    yield (x, 2**62), 3
    yield (x, 2**63), 4
    yield (x, True), 5
    yield (x, 1j), 6
    yield (x[:5], 2.0), 7
    yield (x.reshape(2, 3), 2.0), 8
    yield (x.astype(np.float64), 2.0), 9
    yield (x.astype(">f4"), 2.0), 9


@pytest.mark.parametrize("repeats", [1, 3])
def test_every_kind_of_call_gets_its_own_program(repeats):
    f = tracegraph.jit(scaled, device="host")
    for arguments, traces in calls():
        for _ in range(repeats):
            found = f(*arguments)
        wanted = scaled(*map(np.asarray, arguments[:1]), *arguments[1:])
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(np.asarray(found), wanted)
        assert f.stats()["traces"] == traces
    assert f.stats()["launches"] == repeats * len(list(calls()))


def test_calls_of_two_kinds_in_turns_are_traced_twice():
    f = tracegraph.jit(scaled, device="host")
    for k in range(5):
        np.testing.assert_array_equal(np.asarray(f(np.ones(3), k)), np.full(3, k + 1.0))
        np.testing.assert_array_equal(np.asarray(f(np.ones(4), k)), np.full(4, k + 1.0))
    assert f.stats()["traces"] == 2
    assert f.stats()["launches"] == 10


def test_arrays_of_the_other_byte_order_are_converted_in_each_call():
    f = tracegraph.jit(lambda x: x[1:] - x[:-1], device="host")
    for k in range(3):
        x = (np.arange(5.0) * k).astype(">f8")
        np.testing.assert_array_equal(np.asarray(f(x)), np.full(4, float(k)))
    assert f.stats()["traces"] == 1


@pytest.mark.parametrize("n", [0, 1, MOST_LEAVES, MOST_LEAVES + 1])
def test_any_number_of_arguments(n):
    f = tracegraph.jit(lambda *xs: sum(xs, np.zeros(2)), device="host")
    arguments = [np.full(2, float(i)) for i in range(n)]
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(f(*arguments)), np.full(2, n * (n - 1) / 2))
    with pytest.raises(errors.UnsupportedArgumentError, match="is of type str"):
        f(*arguments, "text")
    assert f.stats()["traces"] == 1


def test_a_wrong_number_of_arguments_is_the_functions_own_error():
    f = tracegraph.jit(scaled, device="host")
    f(np.ones(2), 2.0)
    f(np.ones(2), 2.0)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'a'"):
        f(np.ones(2))
    np.testing.assert_array_equal(np.asarray(f(np.ones(2), a=2.0)), [3.0, 3.0])


def test_a_donated_array_is_invalid_after_a_repeated_call():
    f = tracegraph.jit(lambda x: x + 1, device="host", donate_argnums=0)
    for _ in range(3):
        x = tracegraph.asarray(np.ones(3), device="host")
        np.testing.assert_array_equal(np.asarray(f(x)), [2.0, 2.0, 2.0])
        with pytest.raises(errors.DonatedArrayError):
            f(x)
    assert f.stats()["traces"] == 1


def test_results_of_repeated_calls_are_read_only_and_their_own():
    f = tracegraph.jit(lambda x: (x + 1, {"twice": 2 * x}), device="host")
    x = np.ones(3)
    results = [f(x) for _ in range(3)]
    arrays = [a.data for one, more in results for a in (one, more["twice"])]
    assert not any(a.flags.writeable for a in arrays)
    assert x.flags.writeable
    for i, a in enumerate(arrays):
        assert not any(np.shares_memory(a, b) for b in (x, *arrays[:i]))


def test_a_call_inside_a_trace_is_traced_even_if_it_was_called_before():
    inner = tracegraph.jit(lambda x: x * 2, device="host")
    inner(np.ones(2))
    inner(np.ones(2))
    outer = tracegraph.jit(lambda x: inner(x) + inner(np.ones(2)), device="host")
    np.testing.assert_array_equal(np.asarray(outer(np.ones(2))), [4.0, 4.0])
    assert inner.stats()["launches"] == 2


def test_calls_after_a_reset_are_traced_anew():
    f = tracegraph.jit(scaled, device="host")
    for _ in range(2):
        f(np.ones(2), 2.0)
    f.forget()
    np.testing.assert_array_equal(np.asarray(f(np.ones(2), 2.0)), [3.0, 3.0])
    assert f.stats()["traces"] == 2
    assert f.stats()["launches"] == 3


def test_threads_that_call_with_two_kinds_of_arguments():
    f = tracegraph.jit(scaled, device="host")

    def work(number):
        x = np.full(3 + number % 2, float(number))
        for k in range(1000):
            np.testing.assert_array_equal(np.asarray(f(x, float(k))), x * k + 1)

    in_threads(16, work)
    assert f.stats()["launches"] == 16000
    assert f.stats()["traces"] == 2


def total(state, *more, scale=1.0, **named):
    parts = [*tracegraph.tree.leaves(state), *tracegraph.tree.leaves((more, named))]
    return sum(parts, np.zeros(2)) * scale


X, Y, Z = (np.array([10.0**k, k]) for k in range(3))

NESTED = [
    ((X,), {}),
    (((X, Y),), {}),
    (((Y, X),), {}),
    (([X, Y],), {}),
    (((X, [Y, 2.0]), Z), {}),
    (((X, (Y, 2.0)), Z), {}),
    (((X, None), Z), {}),
    (((X, Z), None), {}),
    (({"b": X, "a": Y},), {}),
    (({"a": X, "b": Y},), {}),
    (({"a": X, "c": Y},), {}),
    (({2: X, "b": Y, (1, 2): Z},), {}),
    (({"a": X, "b": {}},), {}),
    (({"a": X, "b": ()},), {}),
    (({"a": X, "b": {"c": 3, "d": [Y]}},), {"scale": 2.0}),
    ((X,), {"scale": 2.0}),
    ((X,), {"scale": 2}),
    ((X, Y), {"scale": 2.0, "other": {"x": 1.0}}),
    ((), {"state": X}),
    ((), {"scale": 3.0, "state": (X, Y)}),
]
"""Arguments that lie otherwise, have other keys, or other values."""


@pytest.mark.parametrize("repeats", [1, 3])
def test_calls_with_nested_and_named_arguments_are_told_apart(repeats):
    f = tracegraph.jit(total, device="host")
    for _ in range(2):
        for args, kwargs in NESTED:
            for _ in range(repeats):
                np.testing.assert_array_equal(
                    np.asarray(f(*args, **kwargs)), total(*args, **kwargs)
                )
    assert f.stats()["launches"] == 2 * repeats * len(NESTED)
    # one for each but those whose values differ alone
    assert f.stats()["traces"] == len({f._signature.bind(a, k).key for a, k in NESTED}) > 15


@pytest.mark.parametrize(("args", "kwargs"), NESTED)
def test_a_repeated_call_with_nested_arguments_is_recognised(args, kwargs, monkeypatch):
    f = tracegraph.jit(total, device="host")
    f(*args, **kwargs)
    monkeypatch.setattr(f, "_run", None)  # what a call that is not recognised comes to
    named = dict(reversed(kwargs.items()))
    np.testing.assert_array_equal(np.asarray(f(*args, **named)), total(*args, **kwargs))


def test_the_last_few_kinds_of_nested_calls_are_recognised(monkeypatch):
    f = tracegraph.jit(total, device="host")
    for _ in range(2):
        for args, kwargs in NESTED[1:5]:
            f(*args, **kwargs)
    monkeypatch.setattr(f, "_signature", None)
    for args, kwargs in NESTED[1:5]:
        np.testing.assert_array_equal(np.asarray(f(*args, **kwargs)), total(*args, **kwargs))


def test_classes_of_others_are_traced_as_before():
    class Pair(NamedTuple):
        first: Any
        second: Any

    f = tracegraph.jit(lambda pair, x: pair.first * x + pair.second, device="host")
    for k in range(3):
        pair = Pair(np.full(2, float(k)), OrderedDict(a=1)["a"])
        np.testing.assert_array_equal(np.asarray(f(pair, 2.0)), np.full(2, 2.0 * k + 1))
    assert f.stats()["traces"] == 1
    g = tracegraph.jit(lambda named: named["a"] - named["b"], device="host")
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(g(OrderedDict(b=X, a=Y))), Y - X)
        np.testing.assert_array_equal(np.asarray(g({"b": X, "a": Y})), Y - X)


@pytest.mark.parametrize("leaves", [MOST_LEAVES, MOST_LEAVES + 1])
def test_any_number_of_nested_arguments(leaves):
    f = tracegraph.jit(total, device="host")
    state = [np.full(2, float(i)) for i in range(leaves)]
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(f(state)), total(state))
        np.testing.assert_array_equal(np.asarray(f(*state)), total(*state))
    assert f.stats()["traces"] == 2


def test_nested_arrays_that_are_donated_are_invalid_after_each_call():
    f = tracegraph.jit(lambda state: (state[0] + 1, state[1]["v"] * 2), donate_argnums=0)
    for _ in range(3):
        x, v = (tracegraph.asarray(np.ones(3), device="host") for _ in range(2))
        first, second = f((x, {"v": v}))
        np.testing.assert_array_equal(np.asarray(first), np.full(3, 2.0))
        np.testing.assert_array_equal(np.asarray(second), np.full(3, 2.0))
        for array in (x, v):
            with pytest.raises(errors.DonatedArrayError):
                np.asarray(array)
