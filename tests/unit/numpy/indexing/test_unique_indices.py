"""Updates and reads at indices that the caller promises not to repeat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.gradients import check_gradient, check_second
from tests.helpers.traced import trace
from tracegraph import errors, grad, vmap

X = np.linspace(0.5, 2, 8)
I = np.array([3, -1, 0, 5])
V = np.array([2.2, 3.1, 0.7, 1.3])

UPDATES = ("set", "add", "subtract", "multiply", "divide", "power", "min", "max")


def ours(x: Any) -> Any:
    return x if hasattr(x, "at") else tracegraph.asarray(x)


def update(method: str, unique: bool) -> Callable[..., Any]:
    return lambda x, i, v: getattr(ours(x).at[i], method)(v, unique=unique)


def distinct(function: Callable[..., Any], *arguments: Any) -> list[tuple[str, int]]:
    """The gathers and scatters that a function records, and how many axes have distinct indices."""
    eqns = tracegraph.jit(function).trace(*arguments).optimized.body.eqns
    at_indices = [e for e in eqns if e.op.name == "gather" or e.op.name.startswith("scatter")]
    return [(e.op.name, e.attrs.get("distinct", 0)) for e in at_indices]


@pytest.mark.parametrize("method", UPDATES)
def test_the_promise_changes_no_result(method: str) -> None:
    promised, plain = update(method, True), update(method, False)
    expected = plain(X, I, V)
    np.testing.assert_array_equal(promised(X, I, V), expected)
    np.testing.assert_array_equal(tracegraph.jit(promised, device="host")(X, I, V), expected)
    assert all(count == 1 for _, count in distinct(promised, X, I, V))
    assert all(count == 0 for _, count in distinct(plain, X, I, V))


def test_reads_and_functions_of_elements() -> None:
    def promised(x: Any, i: Any) -> Any:
        return x.at[i].get(unique=True), x.at[i].apply(np.sqrt, unique=True)

    got, applied = tracegraph.jit(promised, device="host")(X, I)
    np.testing.assert_array_equal(got, X[I])
    np.testing.assert_array_equal(applied, ours(X).at[I].set(np.sqrt(X[I])))
    assert distinct(promised, X, I) == [("gather", 1), ("scatter_set", 1)]


def test_index_arrays_beside_slices_and_other_arrays() -> None:
    x, i, j = np.arange(60.0).reshape(4, 5, 3), np.array([[2], [0]]), np.array([0, 2, 1])

    def promised(x: Any, i: Any, j: Any) -> Any:
        return x.at[i, ::2, j].add(1.0, unique=True), x.at[1, 2].add(1.0, unique=True)

    rows, single = tracegraph.jit(promised, device="host")(x, i, j)
    expected = x.copy()
    expected[i, ::2, j] += 1
    np.testing.assert_array_equal(rows, expected)
    assert single[1, 2, 0] == x[1, 2, 0] + 1
    assert distinct(promised, x, i, j) == [("scatter_add", 2), ("scatter_add", 0)]


def test_dropped_updates_may_repeat() -> None:
    i = np.array([1, 9, 9, 0])
    found = tracegraph.jit(update("add", True), device="host")(X, i, V)
    np.testing.assert_array_equal(found, [X[0] + V[3], X[1] + V[0], *X[2:]])
    slope = tracegraph.jit(grad(lambda v, i: (update("add", True)(X, i, v) ** 2).sum()))(V, i)
    np.testing.assert_allclose(slope, [2 * (X[1] + V[0]), 0, 0, 2 * (X[0] + V[3])])


@pytest.mark.parametrize("method", UPDATES)
def test_derivatives_keep_the_promise(method: str) -> None:
    def total(x: Any, i: Any, v: Any) -> Any:
        return np.sin(update(method, True)(x, i, v)).sum()

    of_x, of_v = grad(total, (0, 2))(X, I, V)
    check_gradient(lambda x: total(x, I, V), X)
    check_gradient(lambda v: total(X, I, v), V)
    check_second(lambda x: total(x, I, V), X)
    for found, place in ((of_x, 0), (of_v, 2)):
        plain = grad(lambda *a: np.sin(update(method, False)(*a)).sum(), place)(X, I, V)
        np.testing.assert_allclose(found, plain, 1e-14)
    added = [n for name, n in distinct(grad(total, (0, 2)), X, I, V) if name == "scatter_add"]
    assert all(added)


def test_the_transpose_of_reads_needs_no_order() -> None:
    def total(x: Any, i: Any) -> Any:
        return np.sin(x.at[i].get(unique=True)).sum()

    assert distinct(grad(total), X, I)[-1] == ("scatter_add", 1)
    np.testing.assert_array_equal(grad(total)(X, I), grad(lambda x, i: np.sin(x[i]).sum())(X, I))


def test_derivatives_of_products_need_no_order_if_indices_are_unique() -> None:
    def total(v: Any, i: Any, unique: bool) -> Any:
        return tracegraph.asarray(X).at[i].multiply(v, unique=unique).sum()

    for unique in (True, False):
        slope = grad(lambda v, i, unique=unique: total(v, i, unique))
        np.testing.assert_array_equal(slope(V, I), X[I])
        ops = {e.op.name for e in tracegraph.jit(slope).trace(V, I).optimized.body.eqns}
        assert bool(ops & {"sort", "argsort"}) == (not unique), ops


@pytest.mark.parametrize(
    ("axes", "axes_of_read"), [((0, 0), 2), ((None, 0), 1), ((0, None), 1)], ids=str
)
def test_lanes_keep_the_promise(axes: tuple[int | None, ...], axes_of_read: int) -> None:
    def both(x: Any, i: Any) -> Any:
        return x.at[i].get(unique=True), x.at[i].add(1.0, unique=True)

    x = X if axes[0] is None else np.stack([X, X + 1])
    i = I if axes[1] is None else np.stack([I, I - 2])
    lanes = [(X if axes[0] is None else x[k], I if axes[1] is None else i[k]) for k in (0, 1)]
    expected = [both(ours(x), i) for x, i in lanes]
    for found, wanted in zip(vmap(both, axes)(x, i), zip(*expected, strict=True), strict=True):
        np.testing.assert_array_equal(found, np.stack(wanted))
    recorded = dict(distinct(vmap(both, axes), x, i))
    assert recorded["gather"] == axes_of_read
    assert recorded["scatter_add"] == (1 if axes[1] is None else 2)

    def total(x: Any, i: Any) -> Any:
        return sum((y**2).sum() for y in vmap(both, axes)(x, i))

    check_gradient(lambda x: total(x, i), x)


@pytest.mark.parametrize("i", [[1, 2, 1], [7, 0, -1], [[0, 1], [2, 0]]], ids=str)
def test_constant_indices_are_checked_while_tracing(i: Any) -> None:
    def added(x: Any) -> Any:
        return x.at[np.array(i)].add(1.0, unique=True)

    def replaced(x: Any) -> Any:
        return x.at[np.array(i)].set(1.0, unique=True)

    def read(x: Any) -> Any:
        return x.at[np.array(i)].get(unique=True)

    for function in (added, replaced, read):
        with pytest.raises(errors.RepeatedIndexError, match=f"(?s)twice.*in {function.__name__}"):
            trace(function, X)


def test_pairs_of_constant_indices_are_compared_as_pairs() -> None:
    i, j = np.array([0, 0, 1]), np.array([0, 1, 0])
    assert distinct(lambda x: x.at[i, j].add(1, unique=True), np.ones((2, 2))) == [
        ("scatter_add", 1)
    ]
    with pytest.raises(errors.RepeatedIndexError):
        trace(lambda x: x.at[i, j - 1].add(1, unique=True), np.ones((2, 1)))


@pytest.mark.parametrize(
    "function",
    [
        *(update(method, True) for method in UPDATES),
        lambda x, i, v: x.at[i].get(unique=True),
        lambda x, i, v: tracegraph.fori_loop(0, 3, lambda k, x: x.at[i].add(v, unique=True), x),
        lambda x, i, v: vmap(lambda w: x.at[i].add(w, unique=True))(np.stack([v, v])),
        lambda x, i, v: np.stack([x, x]).at[:, i].add(v, unique=True),
        lambda x, i, v: np.stack([x, x]).at[[[0], [1]], i].add(v, unique=True),
    ],
)
def test_checked_blocks_raise_where_the_promise_is_broken(function: Callable[..., Any]) -> None:
    with tracegraph.check_indices():
        jitted = tracegraph.jit(function, device="host")
        jitted(X, I, V)
        with pytest.raises(errors.RepeatedIndexError, match="leave unique out"):
            jitted(X, np.array([1, 7, -1, 0]), V)
    assert np.shape(jitted(X, np.array([1, 7, -1, 0]), V))  # unchecked outside


def test_lanes_with_indices_of_their_own_are_checked_each() -> None:
    with tracegraph.check_indices():
        jitted = tracegraph.jit(
            vmap(lambda i: ours(np.zeros(8)).at[i].add(1.0, unique=True)), device="host"
        )
        assert jitted(np.array([[0, 1], [0, 1]])).sum() == 4
        with pytest.raises(errors.RepeatedIndexError):
            jitted(np.array([[0, 1], [1, 1]]))


def test_one_index_is_not_checked() -> None:
    with tracegraph.check_indices():
        program = trace(lambda x, i: x.at[i].add(1, unique=True), X, 2)
    assert "distinct" not in str(program)
    assert str(program).count("require") == 1  # that it is in range


def test_a_mask_names_each_element_once() -> None:
    found = tracegraph.jit(lambda x, m: x.at[m].add(1, unique=True), device="host")(X, X > 1)
    np.testing.assert_array_equal(found, X + (X > 1))


@pytest.mark.parametrize("unique", [1, None, "yes", np.array([True]), np.array(True)], ids=repr)
def test_a_promise_of_another_type(unique: Any) -> None:
    for method in ("add", "set"):
        with pytest.raises(TypeError, match="unique must be True or False"):
            getattr(ours(X).at[I], method)(1.0, unique=unique)
    with pytest.raises(TypeError, match="unique must be True or False"):
        ours(X).at[I].get(unique=unique)


def test_a_traced_promise() -> None:
    with pytest.raises(TypeError, match="traced value of type bool"):
        trace(lambda x, u: x.at[I].add(1.0, unique=u), X, True)
