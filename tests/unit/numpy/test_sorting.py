"""Functions that sort, traced and jitted for the host, against NumPy: an expression each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from tests.cases import sorting_expressions
from tests.cases.sorting import DTYPES, in_order, order_of, values
from tests.helpers.numpy_agreement import assert_expression_equals_numpy, assert_jitted_equals_numpy
from tests.helpers.numpy_arguments import ARGUMENTS
from tests.helpers.traced import trace
from tracegraph import errors

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("expression", sorting_expressions.TABLES)
def test_expressions_equal_numpys(expression: str) -> None:
    assert_expression_equals_numpy(expression, ARGUMENTS)


@pytest.mark.parametrize("expression", sorting_expressions.TABLES[::3])
def test_jitted_expressions_equal_numpys(expression: str) -> None:
    if "xp" in expression:
        assert_jitted_equals_numpy(expression.replace("xp.", "np."), ARGUMENTS)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(200,), (0,), (4, 50), (2, 0)], ids=str)
def test_every_dtype_is_sorted_stably(dtype: Any, shape: Any) -> None:
    x = values(dtype, shape)
    sort, order, down, back = tracegraph.jit(
        lambda x: (
            np.sort(x),
            np.argsort(x),
            tnp.sort(x, descending=True),
            tnp.argsort(x, descending=True),
        ),
        device="host",
    )(x)
    assert np.asarray(sort).tobytes() == in_order(x).tobytes()
    np.testing.assert_array_equal(order, order_of(x))
    falling = x.shape[-1] - 1 - order_of(x[..., ::-1])[..., ::-1]
    np.testing.assert_array_equal(back, falling)
    assert np.asarray(down).tobytes() == np.take_along_axis(x, falling, -1).tobytes()


def test_arrays_sort_eagerly() -> None:
    x = values(np.float32, (3, 50))
    ours = tracegraph.asarray(x)
    np.testing.assert_array_equal(tnp.sort(ours), np.sort(x))
    np.testing.assert_array_equal(ours.argsort(axis=0), np.argsort(x, 0, kind="stable"))
    np.testing.assert_array_equal(tnp.sort(x, descending=True)[:, ::-1], np.sort(x))


def test_methods_sort_in_place() -> None:
    def f(x: Any) -> Any:
        y, z = x.copy(), x.copy()
        assert y.sort() is None
        z.sort(axis=0, kind="stable")
        w = x[:, ::-1]
        w = w.copy()
        w.partition(1)
        return y, z, w

    x = ARGUMENTS["x"]
    y, z, w = tracegraph.jit(f, device="host")(x)
    np.testing.assert_array_equal(y, np.sort(x))
    np.testing.assert_array_equal(z, np.sort(x, 0))
    np.testing.assert_array_equal(w, np.sort(x))


def test_a_view_sorts_what_it_views() -> None:
    def f(x: Any) -> Any:
        y = x.copy()
        y[1:, ::2].sort(axis=0)
        return y

    x = RANDOM.normal(size=(5, 4))
    np.testing.assert_array_equal(tracegraph.jit(f, device="host")(x), f(x))


@pytest.mark.parametrize("axis", [0, -1])
def test_top_k(axis: int) -> None:
    x = np.array([[3.0, np.nan, 3.0, 1.0], [2.0, 5.0, 5.0, 5.0], [9.0, 0.0, -1.0, 3.0]])
    values_, places = tracegraph.jit(lambda x: tnp.top_k(x, 2, axis), device="host")(x)
    falling = tnp.argsort(x, axis, descending=True)
    wanted = np.take(falling, [0, 1], axis)
    np.testing.assert_array_equal(places, wanted)
    np.testing.assert_array_equal(values_, np.take_along_axis(x, wanted, axis))
    assert tnp.top_k(np.arange(3), 0)[0].shape == (0,)


def test_derivatives_follow_the_order() -> None:
    x, t = RANDOM.normal(size=(2, 3, 7))
    order = np.argsort(x, 0)
    _, tangent = tracegraph.jvp(lambda x: np.sort(x, 0), (x,), (t,))
    np.testing.assert_array_equal(tangent, np.take_along_axis(t, order, 0))
    gradient = tracegraph.grad(lambda x: (np.sort(x, axis=None) * np.arange(21.0)).sum())(x)
    np.testing.assert_array_equal(gradient, np.argsort(np.argsort(x, None)).reshape(x.shape))
    middle = tracegraph.grad(lambda v: np.median(v))(x[0])
    np.testing.assert_array_equal(middle, (x[0] == np.median(x[0])).astype(float))
    spread = tracegraph.grad(lambda v: np.quantile(v, 0.75))(x[0])
    np.testing.assert_allclose(spread.sum(), 1)


def test_lanes_sort_for_themselves() -> None:
    x = RANDOM.normal(size=(4, 3, 6))
    for axis in (0, -1):
        found = tracegraph.vmap(lambda a, axis=axis: np.sort(a, axis))(x)
        np.testing.assert_array_equal(found, np.sort(x, axis if axis < 0 else 1))
    found = tracegraph.vmap(np.median)(x)
    np.testing.assert_array_equal(found, np.median(x, (1, 2)))


def test_quantiles_at_traced_levels() -> None:
    x, q = RANDOM.normal(size=(5, 9)), np.array([0.0, 0.3, 1.0])
    found = tracegraph.jit(lambda x, q: np.quantile(x, q, axis=1), device="host")(x, q)
    np.testing.assert_array_equal(found, np.quantile(x, q, axis=1))
    found = tracegraph.jit(lambda x, q: np.percentile(x, q), device="host")(np.float32(x), 37.5)
    expected = np.percentile(np.float32(x), 37.5)
    assert found.dtype == expected.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-6)


X = ARGUMENTS["x"]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: np.sort(x, kind="bubble"), ValueError, "sort kind must be one of 'quick'"),
        (lambda x: np.sort(x, kind="stable", stable=True), ValueError, "at the same time"),
        (lambda x: np.sort(x, order="f"), ValueError, "no fields"),
        (lambda x: np.sort(x[0, 0]), np.exceptions.AxisError, "axis -1 is out of bounds"),
        (lambda x: np.sort(x, 2), np.exceptions.AxisError, "axis 2 is out of bounds"),
        (lambda x: np.sort(x, x[0, 0]), errors.StaticArgumentError, "axis"),
        (lambda x: np.partition(x, 4), ValueError, r"kth\(=4\) out of bounds \(4\)"),
        (lambda x: np.partition(x, 1.0), TypeError, "must be integer"),
        (lambda x: np.argpartition(x, 1, kind="quick"), ValueError, "introselect"),
        (
            lambda x: tnp.lexsort([]) if x is None else np.lexsort((x, x[0])),
            ValueError,
            "same shape",
        ),
        (lambda x: tnp.top_k(x, 5), ValueError, "from 0 to 4"),
        (lambda x: tnp.top_k(x, x[0, 0]), errors.StaticArgumentError, "k"),
        (lambda x: np.quantile(x, 1.5), ValueError, r"in the range \[0, 1\]"),
        (lambda x: np.percentile(x, [5, 101]), ValueError, r"in the range \[0, 100\]"),
        (
            lambda x: np.quantile(x, 0.5, method="exact"),
            ValueError,
            "'exact' is not a valid method",
        ),
        (lambda x: np.quantile(x, 0.5, weights=x), ValueError, "Only method 'inverted_cdf'"),
        (lambda x: np.quantile(x + 1j, 0.5), TypeError, "real numbers"),
        (lambda x: np.quantile(x[:, :0], 0.5, axis=1), IndexError, "needs elements"),
        (
            lambda x: np.quantile(x, 0.5, 0, weights=np.ones(4), method="inverted_cdf"),
            ValueError,
            "consistent with shape",
        ),
        (
            lambda x: np.quantile(x, 0.5, weights=np.ones(4), method="inverted_cdf"),
            TypeError,
            "Axis must be specified",
        ),
        (
            lambda x: np.quantile(x, 0.5, 1, weights=-np.ones(4), method="inverted_cdf"),
            ValueError,
            "non-negative",
        ),
    ],
)
def test_misuse_is_explained(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        trace(call, X)
