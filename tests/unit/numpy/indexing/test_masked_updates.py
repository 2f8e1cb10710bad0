"""Writes through a traced mask, as NumPy has them: `v[m] += 1`, `v[m] = f(v[m])`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from tests.helpers.traced import trace
from tracegraph import errors, testing
from tracegraph.dtypes import bfloat16

X = np.array([[0.5, -1.0, 2.0, 4.0], [3.0, 0.25, -5.0, 0.0], [1.0, 1.5, 0.2, -0.5]])
CUBE = np.arange(60.0).reshape(3, 4, 5) % 7
DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
]

Function = Callable[..., Any]

WAYS = ("interpreted", "optimized", "host", "planned_for_cuda", "unrolled", "one_kernel")


def agrees(function: Function, *args: Any) -> None:
    """Require the eager results; sums of selected elements round as those of others do."""
    testing.assert_traced_equals_eager(function, *args, rtol=1e-12, atol=1e-13, ways=WAYS)


def negated(x: Any) -> Any:
    v = x.copy()
    m = v > 0.4
    v[m] = -v[m]
    v[m] *= 3
    v[~m] -= 0.5
    return v


def taken_from_another(x: Any) -> Any:
    v, w = np.zeros_like(x), x * 2
    m = x > 0.4
    v[m] = x[m]
    w[m] = v[m] - x[m] ** 2
    return v, w


def mask_written_twice(x: Any) -> Any:
    v = x.copy()
    v[v < 0] = -v[v < 0]
    v[np.abs(v) > 1] = np.log(v[np.abs(v) > 1]) + x[np.abs(v) > 1]
    return v


def composed(x: Any) -> Any:
    v = x.copy()
    m = (x > 0) & (x < 3)
    v[m] = np.sqrt(v[m]) + x[m] * 2
    v[m] = np.where(v[m] > 1, v[m], np.clip(-v[m], -2, 2))
    v[m] = 1 / v[m]
    return v


def one_column(x: Any) -> Any:
    v = x.copy()
    low = v[:, 0] < 2
    v[low, 1] *= -1
    v[low, 1:] += v[low][:, :1]
    v[low, ::2] = v[low, ::2] * np.array([2.0, 3.0])
    v[..., v[0] > 0] -= 1
    v[1, v[1] > 0] /= 2
    return v


def through_views(x: Any) -> Any:
    v = x.copy()
    m = v > 0.4
    v[1:][m[1:]] = 9
    v.T[m.T] += 1
    row = v[0]
    row[row > 2] = 0
    v[::-1, ::2][m[:, ::2]] *= 2
    v.reshape(-1)[m.reshape(-1)] -= 0.25
    return v, row


def bound_to_a_name(x: Any) -> Any:
    v = x.copy()
    m = v > 0.2
    part = v[m]
    same = part
    v[m] = 0
    part += 1
    part[part > 2] = -1
    part[part < 0] *= 2
    part[:] = part - 0.5
    v[m] += same
    return v


def with_a_mask_that_changes(x: Any) -> Any:
    v, m = x.copy(), x > 0.4
    part = v[m]
    m[0] = False
    v[m] = 7
    w = np.zeros_like(v)
    w[x > 0.4] = part
    return v, w, m


def with_rows(x: Any) -> Any:
    v = x.copy()
    inside = np.sum(v, axis=1) > 0
    v[inside] = v[inside] @ np.arange(16.0).reshape(4, 4)
    v[inside] -= np.array([1.0, 2.0, 3.0, 4.0])
    v[inside] /= np.linalg.norm(v[inside], axis=1)[:, None]
    v[inside] = np.sort(v[inside], axis=1)
    v[inside, 0] = np.max(v[inside], axis=1) - v[inside, 1]
    return v


def relative_to_the_selected(x: Any) -> Any:
    v = x.copy()
    m = v > 0.1
    v[m] = (v[m] - v[m].mean()) / v[m].std()
    v[m] = np.cumsum(v[m])
    v[m] /= np.linalg.norm(v[m])
    return v


def booleans_without_axes(x: Any) -> Any:
    v = x.copy()
    is_large = np.sum(v) > 1
    v[is_large] += 1
    v[is_large] = v[is_large] * 2
    v[is_large, 0] = 5
    v[1, is_large] -= v[1][is_large]
    v[True] += 1
    v[np.False_] = 7
    v[np.True_, 0] *= 2
    v[False, 1] = 7
    return v


def indices_that_are_selected(x: Any) -> Any:
    k = (np.abs(x) * 10).astype(int) % 5
    m = x > 0.2
    counts = np.zeros_like(k, shape=5)
    np.add.at(counts, k[m], 1)
    table = np.zeros_like(x, shape=5) + np.cos(k[0, 0] + np.arange(5.0))
    v = x.copy()
    v[m] = table[k[m]]
    table[k[m]] = 3.5
    return counts, v, table


FUNCTIONS: list[Function] = [
    *(negated, taken_from_another, mask_written_twice, composed, one_column, through_views),
    *(bound_to_a_name, with_a_mask_that_changes, with_rows, relative_to_the_selected),
    *(booleans_without_axes, indices_that_are_selected),
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_writes_equal_numpys(function: Function) -> None:
    agrees(function, X)


@pytest.mark.parametrize("value", [np.full((3, 4), -9.0), np.full((3, 4), 9.0)])
def test_writes_where_none_or_all_are_selected(value: Any) -> None:
    for function in (negated, taken_from_another, mask_written_twice, one_column, through_views):
        agrees(function, value)


INDICES: list[Function] = [
    lambda v: v > 3,
    lambda v: v[:, :, 0] > 3,
    lambda v: v[:, 0, 0] > 1,
    lambda v: (slice(None), v[0] > 3),
    lambda v: (slice(None), v[0, :, 0] > 3),
    lambda v: (..., v[0, 0] > 3),
    lambda v: (0, v[0] > 3),
    lambda v: (0, slice(None), v[0, 0] > 3),
    lambda v: (slice(1, None), v[0, :, 0] > 3, slice(None, None, -2)),
    lambda v: (v[:, 0, 0] > 1, 1),
    lambda v: (v[:, 0, 0] > 1, slice(None), 2),
    lambda v: (None, v > 3),
    lambda v: (slice(None), v[0, :, 0] > 3, None, 1),
    lambda v: v[0, 0, 0] > 1,
    lambda v: (v[0, 0, 3] > 1, 0),
    lambda v: (slice(None), v[0, 0, 0] > 1, slice(2)),
    lambda v: (v[1, 0, 0].astype(int) % 3, v[0] > 3),
]


@pytest.mark.parametrize("number", range(len(INDICES)))
def test_every_form_of_index(number: int) -> None:
    index = INDICES[number]

    def f(x: Any) -> Any:
        v = x.copy()
        at = index(x)
        v[at] += 1
        v[at] = x[at] * 2 - v[at]
        v[at] *= v[at] > 2
        return v, np.sum(v[at]), np.max(x[at], axis=-1, initial=3).sum()

    agrees(f, CUBE)
    agrees(f, (CUBE * 3) % 5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(dtype: str) -> None:
    def f(x: Any, other: Any) -> Any:
        v = x.copy()
        m = other > 0.3
        v[m] = v[m] ^ x[~m].any() if v.dtype == np.bool_ else -v[m] if dtype[0] != "u" else ~v[m]
        if v.dtype != np.bool_:
            v[m] += 1
            v[m] *= v[m]
            v[m] -= x[m]
        w = np.zeros_like(x)
        w[m] = v[m]
        return v, w, v[m].sum(), v[m].max() if dtype[0] != "c" else v[m].prod()

    agrees(f, X.astype(dtype), X)


def test_bfloat16() -> None:
    def f(x: Any) -> Any:
        v = x.copy()
        v[x > 0.3] = -v[x > 0.3] + 1
        v[x > 2] *= 2
        return v

    x = X.astype(bfloat16)
    found = np.asarray(tracegraph.jit(f, device="host")(x))
    assert found.dtype == bfloat16
    np.testing.assert_array_equal(found, f(x))


@pytest.mark.parametrize("shape", [(0,), (1,), (0, 3), (1, 1)])
def test_extents_of_zero_and_one(shape: tuple[int, ...]) -> None:
    def f(x: Any) -> Any:
        v = x.copy()
        m = v > 0
        v[m] = v[m] * 2 + 1
        v[m] -= 3
        return v, v[m].sum(), x[m].any()

    agrees(f, np.ones(shape))
    agrees(f, -np.ones(shape))


def test_in_loops_and_branches() -> None:
    def f(x: Any) -> Any:
        outer = x > 0.4

        def body(i: Any, v: Any) -> Any:
            v[outer] += 1
            m = v > i
            v[m] = np.sqrt(v[m]) + x[m]
            return v

        def once(v: Any) -> Any:
            v[outer] = -v[outer]
            v[x > 0.4] -= v[outer]
            return v

        v = tracegraph.fori_loop(0, 3, body, x)
        v = tracegraph.cond(np.sum(v) > 0, once, lambda v: v, v)
        totals = tracegraph.scan(lambda total, row: (total + row[row > 0].sum(), total), 0.0, v)
        return v, totals

    agrees(f, X)


def test_under_vmap() -> None:
    def f(row: Any) -> Any:
        v = row.copy()
        v[v > 0] = v[v > 0] / v[v > 0].sum()
        v[v < 0] *= -1
        return v

    found = tracegraph.jit(tracegraph.vmap(f), device="host")(X)
    np.testing.assert_allclose(np.asarray(found), np.stack([f(row) for row in X]), rtol=1e-14)


def test_functional_updates() -> None:
    def f(x: Any) -> Any:
        m, c = x > 0.4, np.sum(x) > 0
        return (
            x.at[m].set(x[m] * 2),
            x.at[m].add(x[m]),
            x.at[m].multiply(x[m] + 1),
            x.at[m].divide(x[m]),
            x.at[m].power(2),
            x.at[m].min(x[m] - 1),
            x.at[m].apply(np.sqrt),
            x.at[c].set(3),
            x.at[c].multiply(3),
            x.at[np.True_].add(1),
            x.at[np.False_].add(1),
            x.at[m].get().sum(),
        )

    def expected(x: Any) -> Any:
        m, c = x > 0.4, np.sum(x) > 0
        results = [x.copy() for _ in range(11)]
        results[0][m] *= 2
        results[1][m] += x[m]
        results[2][m] *= x[m] + 1
        results[3][m] /= x[m]
        results[4][m] **= 2
        results[5][m] = np.minimum(x[m], x[m] - 1)
        results[6][m] = np.sqrt(x[m])
        results[7][c] = 3
        results[8][c] *= 3
        results[9][np.True_] += 1
        return (*results, x[m].sum())

    found = tracegraph.jit(f, device="host")(X)
    for one, other in zip(found, expected(X), strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-15)


def test_gradients_are_finite_where_the_others_have_none() -> None:
    def f(x: Any, weight: Any) -> Any:
        v = x.copy()
        m = x > 0
        v[m] = np.sqrt(v[m]) * np.log(weight * v[m])
        v[m] = np.abs(v[m]) ** 1.5
        w = np.where(m, np.where(m, x, 1.0), x)
        return np.sum(v) + np.sum(w[m] / x[m] ** 0.5), v[m].sum()

    def g(x: Any, weight: Any) -> Any:
        return f(x, weight)[0]

    x = np.array([2.0, -3.0, 4.0, -1.0, 1.5])
    dx, dweight = tracegraph.jit(tracegraph.grad(g, argnums=(0, 1)), device="host")(x, 1.25)
    step = 1e-6
    numeric = [(g(x + step * e, 1.25) - g(x - step * e, 1.25)) / (2 * step) for e in np.eye(5)]
    np.testing.assert_allclose(np.asarray(dx), numeric, rtol=1e-6)
    slope = (g(x, 1.25 + step) - g(x, 1.25 - step)) / (2 * step)
    np.testing.assert_allclose(np.asarray(dweight), slope, rtol=1e-6)


def test_casts_in_place_are_numpys() -> None:
    def f(x: Any) -> Any:
        v = x.astype(int)
        v[v > 0] += 0.5
        return v

    with pytest.raises(TypeError, match="same_kind"):
        f(X)
    with pytest.raises(errors.InPlaceCastError, match="same_kind"):
        trace(f, X)


REFUSED: dict[str, tuple[Function, str]] = {
    "another mask": (
        lambda v, m, n: v.at[m].set(v[n]),
        r"v\[n\] beside .*, which another mask selects, .*read both at one mask",
    ),
    "a number of values": (
        lambda v, m, n: v.at[m].set(np.arange(4.0)),
        r"an array of shape \(4,\) beside .*numpy\.place\(",
    ),
    "two masks": (lambda v, m, n: v[m[:, 0], n[0]], r"v\[m\[:, 0\], n\[0\]\].*numpy\.where\("),
    "an index array": (lambda v, m, n: v[m[:, 0], [0]], r"index with the mask alone"),
    "sort": (lambda v, m, n: np.sort(v[m]), r"numpy\.sort of v\[m\].*numpy\.where\(m, v, numpy"),
    "unique": (lambda v, m, n: np.unique(v[m]), r"numpy\.unique of v\[m\].*size=n"),
    "bincount": (lambda v, m, n: np.bincount(v[m].astype(int)), r"numpy\.bincount of .*weights=m"),
    "histogram": (lambda v, m, n: np.histogram(v[m]), r"numpy\.histogram of .*weights=m"),
    "concatenate": (lambda v, m, n: np.concatenate([v[m], v[n]]), r"concatenate of v\[m\]"),
    "len": (lambda v, m, n: len(v[m]), r"len\(\) of v\[m\].*numpy\.count_nonzero\(m\)"),
    "shape": (lambda v, m, n: v[m].shape, r"the shape of v\[m\].*numpy\.count_nonzero\(m\)"),
    "size": (lambda v, m, n: np.size(v[m]), r"numpy\.size of v\[m\].*numpy\.count_nonzero\(m\)"),
    "an element": (lambda v, m, n: v[m][0], r"extract\(m, v, size=n\)"),
    "a slice": (lambda v, m, n: v[m][1:], r"extract\(m, v, size=n\)"),
    "a loop": (lambda v, m, n: list(v[m]), r"iteration over v\[m\].*m\[i\]"),
    "if": (lambda v, m, n: 1 if v[m] else 2, r"numpy\.any\(v\[m\]\)"),
    "float": (lambda v, m, n: float(v[m]), r"numpy\.sum\(v\[m\]\)"),
    "a result": (lambda v, m, n: v[m] * 2, r"numpy\.where\(m, v, other\).*extract\(m, v, size=n\)"),
    "beside a slice": (lambda v, m, n: v[1:, m[0]] + 0, r"numpy\.where\(m\[0\], v\[1:, :\], other"),
    "a method": (lambda v, m, n: v[m].tolist(), r"conversion of v\[m\] to numbers"),
    "a carry": (
        lambda v, m, n: tracegraph.fori_loop(0, 2, lambda i, s: s, v[m]),
        r"numpy\.where\(m, v, other\)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_the_number_of_elements_says_what_to_write(name: str) -> None:
    function, message = REFUSED[name]
    with pytest.raises(errors.BooleanMaskError, match=message) as caught:
        trace(lambda v: function(v, v > 0, v > 1), X)
    assert "test_masked_updates.py:" in str(caught.value)
    assert isinstance(caught.value, IndexError)


def test_place_and_putmask_take_what_the_mask_selects() -> None:
    def f(x: Any) -> Any:
        v, w = x.copy(), x.copy()
        np.place(v, x > 0.4, [1.0, 2.0])
        w[x > 0.4] = np.minimum(w[x > 0.4], v[x > 0.4])
        return v, w

    agrees(f, X)


def test_a_mask_of_the_closure_and_of_an_argument() -> None:
    fixed = X > 1

    def f(x: Any, m: Any) -> Any:
        v = x.copy()
        v[m] = v[m] + 1
        v[fixed] *= 2
        v[m & fixed] = v[m & fixed] - v[fixed & m][()] * 0
        return v

    with pytest.raises(errors.BooleanMaskError, match="another mask"):
        trace(f, X, X > 0)

    def g(x: Any, m: Any) -> Any:
        v = x.copy()
        v[m] = v[m] + tnp.sum(v[fixed])
        v[m & fixed] += v[m & fixed]
        return v

    agrees(g, X, X > 0)
