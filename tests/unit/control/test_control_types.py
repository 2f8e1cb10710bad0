"""An eager loop returns the types that a traced one does, however few iterations it has."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.traced import assert_traced_equals_eager, trace
from tracegraph import Array, control, errors, tree
from tracegraph.ir.types import type_of

ONES = {dtype: dtype(1) for dtype in (np.int8, np.int32, np.uint64, np.float16, np.float32)}


def assert_alike(function: Callable[..., Any], *args: Any) -> Any:
    """As `assert_traced_equals_eager`, and results that are weak are so on both sides."""
    eager = assert_traced_equals_eager(function, *args)
    assert [type_of(leaf) for leaf in tree.leaves(eager)] == list(trace(function, *args).out_types)
    return eager


def repeated(construct: str, trips: int, body: Callable[[Any], Any], init: Any) -> Any:
    """The carry after a number of iterations, by one of the constructs."""
    if construct == "while_loop":
        count = np.int64(0)
        return control.while_loop(
            lambda c: c[0] < trips, lambda c: (c[0] + 1, body(c[1])), (count, init)
        )[1]
    if construct == "fori_loop":
        return control.fori_loop(0, trips, lambda i, c: body(c), init)
    return control.scan(lambda c, x: (body(c), (c, x)), init, np.zeros(trips, np.int8))


BODIES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "weak to a wider weak": (lambda c: c + 1.5, 0),
    "weak to complex": (lambda c: c * 1j, 2.5),
    "weak stays": (lambda c: c + 1, 0),
    "weak to float32": (lambda c: c + np.float32(0.5), 0),
    "weak to int8": (lambda c: c * np.int8(2), 3),
    "strong gets weak": (lambda c: 1, np.float32(5)),
    "strong stays": (lambda c: c * 2, np.float16(5)),
    "in a chain": (lambda c: (c[0] + c[1], c[1] + c[2], np.float32(0.5)), (0, 0, 0)),
    "in a ring": (lambda c: [c[1], c[2], c[0]], [np.int16(3), 1, 2]),
    "in a dict": (
        lambda c: {"b": c["a"], "a": c["a"] + 0.5, "n": None},
        {"a": 1, "b": 2, "n": None},
    ),
    "an array": (lambda c: (c[0] + 1, c[1] * c[0]), (0, np.ones(2, np.float32))),
    "an array from a scalar's": (
        lambda c: (c[0] + np.sum(c[1]), c[1]),
        (0, np.ones(2, np.float16)),
    ),
}


@pytest.mark.parametrize("trips", [0, 1, 2, 3])
@pytest.mark.parametrize("construct", ["while_loop", "fori_loop", "scan"])
@pytest.mark.parametrize("name", BODIES)
def test_types_do_not_depend_on_the_number_of_iterations(
    name: str, construct: str, trips: int
) -> None:
    body, init = BODIES[name]
    assert_alike(lambda _: repeated(construct, trips, body, init), np.float64(0))


@given(
    init=st.lists(st.sampled_from([0, 0.5, 1j, *ONES.values()]), min_size=1, max_size=4),
    order=st.permutations(range(4)),
    added=st.lists(st.sampled_from([0, 0.5, 1j, *ONES.values()]), min_size=4, max_size=4),
    construct=st.sampled_from(["while_loop", "fori_loop", "scan"]),
    trips=st.integers(0, 3),
)
def test_weak_and_strong_leaves_that_change_places(
    init: list[Any], order: list[int], added: list[Any], construct: str, trips: int
) -> None:
    places = [place for place in order if place < len(init)]

    def body(c: list[Any]) -> list[Any]:
        return [c[place] + added[place] for place in places]

    def function(_: Any) -> Any:
        return repeated(construct, trips, body, init)

    try:
        trace(function, np.float64(0))
    except errors.LeafMismatchError:
        with pytest.raises(errors.LeafMismatchError):
            repeated(construct, 4, body, init)
    else:
        assert_alike(function, np.float64(0))


def test_stacked_results_have_the_dtype_of_a_carry_that_has_settled() -> None:
    def f(xs: Any) -> Any:
        return control.scan(lambda c, x: (x, c * np.int16(3)), 2.0, xs)

    for length in range(4):
        _, ys = assert_alike(f, np.ones(length, np.float32))
        assert ys.dtype == np.float32


def test_a_loop_without_iterations_returns_the_arrays_of_the_package_as_such() -> None:
    x = Array(np.ones(2, np.float32))
    last, ys = control.scan(lambda c, v: ((c[0] + v, c[1]), v), (0, x), Array(np.ones(0, "f2")))
    assert isinstance(last[0], np.float16)
    assert isinstance(last[1], Array)
    assert isinstance(ys, Array)


def test_a_mismatch_shows_without_iterations_too() -> None:
    with pytest.raises(errors.LeafMismatchError, match=r"given ~i64\[\], returned f64\[2\]"):
        control.fori_loop(0, 0, lambda i, c: np.ones(2), 0)
    with pytest.raises(errors.StructureError):
        control.while_loop(lambda c: c[0] > 0, lambda c: c[0], (0, 0))


def test_a_body_that_only_python_can_run_leaves_the_carry_as_it_is() -> None:
    def body(c: Any) -> Any:
        return c + 0.5 if c > 2 else c + 1

    assert control.while_loop(lambda c: c < 0, body, 1) == 1
    assert control.while_loop(lambda c: c < 2, body, 1) == 2
    assert control.while_loop(lambda c: c < 3.5, body, 1) == 3.5
    last, ys = control.scan(lambda c, _: (c / 2 if c > 2 else c, c), 3, length=1)
    assert (last, ys.dtype) == (1.5, np.int64)


def test_loops_that_count_settle_alike() -> None:
    seen: list[tuple[int, int | None]] = []

    def f(n: Any) -> Any:
        def step(c: Any) -> Any:
            return c + np.float32(0.5)

        return control.while_loop(
            lambda c: c < n, step, 0, max_steps=5, progress=lambda *told: seen.append(told)
        )

    assert [f(n).dtype for n in (0, 0.5, 1)] == [np.float32] * 3
    assert (0, None) not in seen


TABLE = np.arange(12.0).reshape(4, 3)


def numbered(c: Any) -> Any:
    """A body that only plain Python can run."""
    return c[0] + 1, np.sort(c[1])


@pytest.mark.parametrize("trips", range(3))
def test_eager_loops_need_not_be_traceable(trips: int) -> None:
    """Whatever their bodies raise on traced values; no trips, or too few to settle the types."""
    init = (0, np.array([2.0, 1.0]))
    looped = control.while_loop(lambda c: c[0] < trips, numbered, init)
    counted = control.fori_loop(0, trips, lambda i, c: numbered(c), init)
    scanned, ys = control.scan(lambda c, x: (numbered(c), float(x)), init, np.ones(trips, "f4"))
    for count, values in (looped, counted, scanned):
        assert count == trips
        np.testing.assert_array_equal(values, np.sort(init[1]) if trips else init[1])
    np.testing.assert_array_equal(ys, np.ones(trips), strict=True)


@pytest.mark.parametrize(
    ("body", "row"),
    [
        (lambda i: TABLE[i], np.zeros(3)),
        (lambda i: {"y": TABLE[int(i)].tolist()}, {"y": [0.0, 0.0, 0.0]}),
        (lambda i: (np.median(TABLE, axis=0), int(i)), (np.zeros(3), 0)),
        (lambda i: np.sort(TABLE[i : i + 1], axis=None), np.zeros(3)),
    ],
)
def test_no_rows_are_mapped_by_what_only_numpy_has(body: Any, row: Any) -> None:
    found = control.map(body, np.arange(0))
    for got, one in zip(tree.leaves(found), tree.leaves(row), strict=True):
        wanted = np.zeros((0, *np.shape(one)), np.asarray(one).dtype)
        np.testing.assert_array_equal(got, wanted, strict=True)
    assert tree.flatten(found)[1] == tree.flatten(row)[1]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (lambda i: TABLE[:0][i], IndexError),
        (lambda i: math.log(i), ValueError),
        (lambda i: 1 / float(i), ZeroDivisionError),
        (lambda i: {3: 1.0}[int(i)], KeyError),
    ],
)
def test_what_fails_for_zeros_says_why_it_was_called(body: Any, kind: type[Exception]) -> None:
    for looped in (control.map, lambda f, xs: control.scan(lambda c, x: (c, f(x)), 0, xs)):
        with pytest.raises(kind) as caught:
            looped(body, np.arange(0))
        (note,) = (n for n in caught.value.__notes__ if "there are no slices" in n)
        assert re.match(r"(map|scan): .*<lambda> \(test_control_types\.py:\d+\) cannot be", note)
    ran = control.map(lambda i: (i, TABLE[i]), np.arange(0))
    assert ran[1].shape == (0, 3)


def test_slices_of_zeros_do_not_reach_the_carry() -> None:
    def body(c: Any, x: Any) -> Any:
        c += np.sort(x)  # the body's own copy
        return c, x

    init = np.ones(2)
    last, ys = control.scan(body, init, np.zeros((0, 2)))
    np.testing.assert_array_equal(last, np.ones(2))
    np.testing.assert_array_equal(init, np.ones(2))
    assert ys.shape == (0, 2)
