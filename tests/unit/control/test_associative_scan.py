"""associative_scan: values in all orders and lengths, types, derivatives, lanes, loops, errors."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.compiled import host_jit, on_host
from tracegraph import associative_scan, errors

RNG = np.random.default_rng(3)

pytestmark = pytest.mark.usefixtures("each_host")


def then(first: Any, second: Any) -> Any:
    """Two steps of h = a h + b as one."""
    (a, b), (c, d) = first, second
    return a * c, b * c + d


def one_after_the_other(fn: Callable[[Any, Any], Any], rows: Any) -> Any:
    return np.stack(list(itertools.accumulate(rows, fn)))


@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 9, 15, 64, 65, 200, 513])
@pytest.mark.parametrize("reverse", [False, True])
def test_sums(n: int, reverse: bool) -> None:
    x = RNG.integers(-9, 9, n)
    expected = x[::-1].cumsum()[::-1] if reverse else x.cumsum()

    def sums(x: Any) -> Any:
        return associative_scan(np.add, x, reverse)

    for found in (sums(x), on_host(sums, x)):
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == x.dtype


@pytest.mark.parametrize(("axis", "reverse"), [(0, False), (1, True), (-3, False), (-4, True)])
def test_products_of_matrices_keep_their_order(axis: int, reverse: bool) -> None:
    """Matrices do not commute."""
    x = RNG.standard_normal((20, 30, 2, 2)) / 2
    rows = np.moveaxis(x, axis, 0)
    rows = rows[::-1] if reverse else rows
    expected = one_after_the_other(np.matmul, rows)
    expected = np.moveaxis(expected[::-1] if reverse else expected, 0, axis)

    def products(x: Any) -> Any:
        return associative_scan(np.matmul, x, reverse=reverse, axis=axis)

    for found in (products(x), on_host(products, x)):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_trees_of_several_dtypes() -> None:
    """How long the value of each element has been the same: runs of runs."""
    values = RNG.integers(0, 2, 100)

    def joined(a: Any, b: Any) -> Any:
        goes_on = a["last"] == b["first"]
        return {
            "first": a["first"],
            "last": b["last"],
            "run": np.where(goes_on & b["is_one"], a["run"] + b["run"], b["run"]),
            "is_one": a["is_one"] & b["is_one"] & goes_on,
        }

    def runs(values: Any) -> Any:
        small, ones = values.astype("int8"), np.ones_like(values)
        elems = {"first": small, "last": small, "run": ones, "is_one": ones > 0}
        return associative_scan(joined, elems)["run"]

    changes = np.flatnonzero(np.diff(values, prepend=-1))
    expected = np.arange(1, 101) - changes[np.searchsorted(changes, np.arange(100), "right") - 1]
    for found in (runs(values), on_host(runs, values)):
        np.testing.assert_array_equal(found, expected)


def test_derivatives_are_those_of_a_loop() -> None:
    a, b, weights = RNG.uniform(0.5, 1, 30), RNG.standard_normal(30), RNG.standard_normal(30)

    def parallel(a: Any, b: Any) -> Any:
        return (associative_scan(then, (a, b))[1] * weights).sum()

    def sequential(a: Any, b: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            h = x[0] * h + x[1]
            return h, h

        return (tracegraph.scan(step, 0.0, (a, b))[1] * weights).sum()

    for got, wanted in zip(
        on_host(tracegraph.grad(parallel, (0, 1)), a, b),
        on_host(tracegraph.grad(sequential, (0, 1)), a, b),
        strict=True,
    ):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)
    _, tangent = tracegraph.jvp(parallel, (a, b), (weights, a))
    _, expected = tracegraph.jvp(sequential, (a, b), (weights, a))
    np.testing.assert_allclose(tangent, expected, rtol=1e-12)


def test_derivatives_of_elements_that_would_overflow_if_combined_otherwise() -> None:
    """No products are formed besides those of the results and of blocks within them."""
    x = np.array([1e200, 1e-200] * 20)
    gradient = on_host(tracegraph.grad(lambda x: associative_scan(np.multiply, x)[-1]), x)
    np.testing.assert_allclose(gradient * x, np.ones(40), rtol=1e-12)


def test_lanes_and_loops() -> None:
    a, b = RNG.uniform(0.5, 1, (5, 40)), RNG.standard_normal((5, 40))

    def program(a: Any, b: Any) -> Any:
        return tracegraph.fori_loop(0, 3, lambda _, h: associative_scan(then, (a, h))[1], b)

    expected = np.stack([program(*lane) for lane in zip(a, b, strict=True)])
    np.testing.assert_allclose(on_host(tracegraph.vmap(program), a, b), expected, rtol=1e-12)


def test_a_cuda_plan_has_few_kernels() -> None:
    """Each level of 8 is some kernels: no step of single elements."""
    types = [tracegraph.ArrayType("float32", (1 << 15,))] * 2
    lowered = tracegraph.jit(lambda *x: associative_scan(then, x)[1], device="cuda").lower(*types)
    assert len(lowered.nodes) <= 5 * 4


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: associative_scan(3, np.ones(2)), errors.NotCallableError, "fn"),
        (
            lambda: associative_scan(lambda a: a, np.ones(2)),
            errors.ParametersError,
            "is called with",
        ),
        (lambda: associative_scan(np.add, ()), ValueError, "has no array"),
        (lambda: associative_scan(np.add, (np.ones(2), np.ones(3))), ValueError, "one extent"),
        (lambda: associative_scan(np.add, np.ones(2), axis=1), np.exceptions.AxisError, "1"),
        (lambda: associative_scan(np.add, 3.0), np.exceptions.AxisError, "0"),
        (lambda: associative_scan(np.add, ["x"]), errors.LeafTypeError, "elems"),
        (
            lambda: associative_scan(lambda a, b: (a, b), np.ones(2)),
            errors.StructureError,
            "structure",
        ),
        (
            lambda: associative_scan(lambda a, b: a > b, np.ones(2)),
            errors.LeafMismatchError,
            "bool",
        ),
        (lambda: associative_scan(lambda a, b: a[:0], np.ones(9)), errors.LeafMismatchError, "0"),
    ],
)
def test_errors_say_what_is_wrong(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
    with pytest.raises(error, match=message):
        host_jit(lambda _: call())(1.0)
