"""What branches and bodies are given and return is their own, eagerly and when traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph import cond, errors, fori_loop, scan, switch, tree, while_loop

pytestmark = pytest.mark.usefixtures("each_host")

X = np.arange(6.0)


def assert_equal_everywhere(function: Callable[..., Any], *args: Any) -> Any:
    """Require equal results, eagerly and jitted, and arguments that stay as they were."""
    before = tree.map(np.copy, args)
    eager, structure = tree.flatten(function(*args))
    jitted, found = tree.flatten(tracegraph.jit(function, device="host")(*args))
    assert found == structure
    for got, wanted in zip(jitted, eager, strict=True):
        assert (got.dtype, got.shape) == (np.asarray(wanted).dtype, np.shape(wanted))
        np.testing.assert_array_equal(np.asarray(got), wanted)
    for now, then in zip(tree.leaves(args), tree.leaves(before), strict=True):
        np.testing.assert_array_equal(now, then)
    return tree.unflatten(structure, eager)


def choosing(kind: str) -> Callable[..., Any]:
    """`cond`, or `switch` of one or two branches, called as cond is."""

    def call(pred: Any, taken: Any, other: Any, *operands: Any) -> Any:
        if kind == "cond":
            return cond(pred, taken, other, *operands)
        branches = [other, taken] if kind == "switch" else [taken]
        return switch(np.int32(1) * pred, branches, *operands)

    return call


KINDS = ["cond", "switch", "switch of one branch"]

RETURNED: dict[str, Callable[[Any, Any], Any]] = {
    "the operand": lambda y, captured: y,
    "a view of the operand": lambda y, captured: y[1:],
    "a transposed view": lambda y, captured: y.reshape(2, 3).T,
    "the operand twice": lambda y, captured: (y, y),
    "the operand and a view": lambda y, captured: {"a": y, "b": y[::-1]},
    "a captured array": lambda y, captured: captured,
    "a view of a captured array": lambda y, captured: captured[2:],
    "a new array twice": lambda y, captured: [y * 1] * 2,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", RETURNED)
def test_results_of_branches_alias_nothing(kind: str, name: str) -> None:
    def f(x: Any, p: Any) -> Any:
        y, captured = x * 1, x * 2

        def branch(y: Any) -> Any:
            return RETURNED[name](y, captured)

        def other(y: Any) -> Any:
            return tree.map(lambda a: a * 0, branch(y))

        r = choosing(kind)(p, branch, other, y)
        first = tree.leaves(r)[0]
        first[0] = 50
        y[1] = 60
        captured[2] = 70
        first[-1] += 1
        return y, captured, r

    assert_equal_everywhere(f, X, True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_branch_writes_to_operands_of_its_own(kind: str) -> None:
    def taken(y: Any, z: Any) -> Any:
        y[0] = 7
        z.imag += 1
        y[1:][::2] *= 2
        return y, z

    def f(x: Any, p: Any) -> Any:
        y, z = x * 1, x * 1j
        r = choosing(kind)(p, taken, lambda y, z: (y, z), y, z)
        direct = choosing(kind)(p, taken, lambda y, z: (y, z), x, z)
        return y, z, r, direct

    y, _, (changed, _), _ = assert_equal_everywhere(f, X, True)
    assert y[0] == 0
    assert changed[0] == 7


def test_results_of_another_kind_than_arrays_stay_what_they_are() -> None:
    marker = object()
    assert cond(True, lambda: marker, lambda: None) is marker
    given: dict[str, Any] = {"b": 1, "a": None}
    assert cond(True, lambda: given, lambda: None) is given


def write_an_element(c: Any, i: Any) -> Any:
    c[i] = 7
    return c


def add_in_place(c: Any, i: Any) -> Any:
    c += i
    return c


def write_through_a_view(c: Any, i: Any) -> Any:
    row = c[::2]
    row[1:] = c[1] + i
    np.multiply(c, 2, out=c)
    return c


def return_the_written_and_a_view(c: Any, i: Any) -> Any:
    c[i] += 3
    return c[::-1]


BODIES = [write_an_element, add_in_place, write_through_a_view, return_the_written_and_a_view]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_a_body_writes_to_its_carry(body: Callable[..., Any]) -> None:
    def f(x: Any) -> Any:
        y = x * 1
        counted = fori_loop(0, 3, lambda i, c: body(c, i), y)
        direct = fori_loop(0, 3, lambda i, c: body(c, i), x)
        whiled = while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, body(s[1], s[0])), (0, x))
        scans = [
            scan(lambda c, i: (body(c, i), c), x, np.arange(3), unroll=unroll)
            for unroll in (1, 2, True)
        ]
        counted[0] = 90
        return y, counted, direct, whiled, scans

    assert_equal_everywhere(f, X)


def test_carries_that_exchange_and_repeat_arrays_are_apart() -> None:
    def f(x: Any) -> Any:
        captured = x * 3

        def body(i: Any, c: Any) -> Any:
            a, b, d = c
            a[i] = -1
            b += 1
            d[0] += 5
            return cond(i % 2 == 0, lambda: (b, a, captured), lambda: (a, a, d))

        def plain(i: Any, c: Any) -> Any:
            a, b, d = c
            a[i] = -1
            d[0] += 5
            return b, b, captured

        last = fori_loop(0, 4, body, (x, x, x))
        last[2][1] = 80
        other = fori_loop(0, 4, plain, (x, x + 1, x))
        other[0][0] = other[2][0] = 81
        return last, other, captured

    assert_equal_everywhere(f, X)


@pytest.mark.parametrize("unroll", [1, 2, 3, True])
def test_a_scan_of_several_steps_writes_to_what_the_step_before_returned(unroll: Any) -> None:
    def f(x: Any, xs: Any) -> Any:
        captured = x + 1

        def step(c: Any, row: Any) -> Any:
            c[0] += row[1]
            y = c
            c = cond(c[0] > 3, lambda: captured, lambda: y)
            return c, (y, row)

        last, ys = scan(step, x, xs, unroll=unroll)
        rows = scan(lambda c, row: (row, c), x, xs, unroll=unroll)
        last[1] = 9
        return last, ys, rows, captured

    assert_equal_everywhere(f, X[:3], np.arange(15.0).reshape(5, 3))


def test_a_condition_does_not_write_to_the_carry() -> None:
    def goes_on(c: Any) -> Any:
        c[0] = 5
        return c[1] < 3

    def f(x: Any) -> Any:
        return while_loop(goes_on, lambda c: c + 1, x)

    with pytest.raises(ValueError, match="read-only"):
        f(X)
    with pytest.raises(errors.TracerWriteError, match="parameter of this branch or loop body"):
        tracegraph.jit(f, device="host")(X)


def test_slices_and_captured_arrays_are_read_only_and_say_so() -> None:
    def sliced(x: Any) -> Any:
        def step(c: Any, row: Any) -> Any:
            row[0] = 1
            return c, row

        return scan(step, 0.0, x.reshape(2, 3))

    with pytest.raises(ValueError, match="read-only"):
        sliced(X)
    with pytest.raises(errors.TracerWriteError, match="read-only") as caught:
        tracegraph.jit(sliced, device="host")(X)
    assert "test_ownership.py" in str(caught.value)

    def captured(x: Any) -> Any:
        y = x * 1

        def branch() -> Any:
            y[0] = 1
            return y

        return cond(x[0] == 0, branch, lambda: y)

    with pytest.raises(errors.TracerWriteError, match="captured from outside"):
        tracegraph.jit(captured, device="host")(X)


def test_a_carry_is_still_named_as_a_parameter() -> None:
    def f(x: Any) -> Any:
        return fori_loop(0, 3, lambda i, c: c if c[0] else c + 1, x)

    with pytest.raises(errors.TracerBoolError, match="computed at"):
        tracegraph.jit(f, device="host")(X)
    with pytest.raises(errors.TracerBoolError, match="parameter of this branch or loop body"):
        tracegraph.jit(lambda x: fori_loop(0, 3, lambda i, c: c if c else c + 1, x), device="host")(
            X
        )
