"""apply_along_axis and vectorize, traced and jitted, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph as tg
import tracegraph.numpy as tnp
from tests.helpers.numpy_agreement import assert_jitted_equals_numpy
from tracegraph import errors

X = np.random.default_rng(4).normal(size=(3, 4, 2))
ARGUMENTS: dict[str, Any] = {"x": X, "i": np.arange(6, dtype=np.int8).reshape(2, 3), "e": X[:0]}


@pytest.mark.parametrize(
    "expression",
    [
        *(f"xp.apply_along_axis(np.sum, {k}, x)" for k in (0, 1, -1, 3)),
        *(f"xp.apply_along_axis(np.cumsum, {k}, x)" for k in (0, 1, -1)),
        *(f"xp.apply_along_axis(np.outer, {k}, x, np.arange(2.0))" for k in (0, 1, 2)),
        "xp.apply_along_axis(lambda r: r.max() > 1, 1, i)",
        "xp.apply_along_axis(np.diff, 1, i, n=2)",
        "xp.apply_along_axis(np.sum, 0, i[0])",
        "xp.apply_along_axis(np.sum, 1, e)",
        "xp.apply_along_axis(np.sum, 0, e)",
    ],
)
def test_apply_along_axis_equals_numpys(expression: str) -> None:
    assert_jitted_equals_numpy(expression, ARGUMENTS)


def clamped(a: Any, b: Any) -> Any:
    return np.where(a > b, a, b + 1)


def newton(a: Any) -> Any:
    return tg.fori_loop(0, 4, lambda _, r: 0.5 * (r + a / r), a)


@pytest.mark.parametrize("otypes", [None, "f", [np.int32]])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "float64"])
@pytest.mark.parametrize("function", [clamped, lambda a, b: a * b + 2, lambda a, b: 3])
def test_vectorize_equals_numpys(function: Callable[..., Any], dtype: str, otypes: Any) -> None:
    x, y = np.arange(1, 4).astype(dtype), np.array([[2], [1]], dtype)
    wanted = np.vectorize(function, otypes)(x, y)
    f = tg.jit(tnp.vectorize(function, otypes), device="host")
    got = np.asarray(f(x, y))
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_array_equal(got, wanted)


def test_what_is_elementwise_is_done_on_whole_arrays_and_the_rest_in_a_loop() -> None:
    scale = np.arange(3.0)

    def f(x: Any, c: Any) -> Any:
        whole = tnp.vectorize(lambda a: (a * c, a + 1))(x)
        return (*whole, tnp.vectorize(newton)(x), tnp.vectorize(lambda a: np.sum(scale * a))(x))

    jitted = tg.jit(f, device="host")
    x = np.arange(1.0, 6.0)
    got = [np.asarray(y) for y in jitted(x, 2.0)]
    for found, wanted in zip(got, (x * 2, x + 1, np.vectorize(newton)(x), 3 * x), strict=True):
        np.testing.assert_allclose(found, wanted)
    assert str(jitted.trace(x, 2.0).program).count("= scan") == 2


def test_excluded_arguments_are_passed_on() -> None:
    def polynomial(p: Any, x: Any) -> Any:
        return p[0] * x + p[1]

    f: Any = tg.jit(lambda p, x: tnp.vectorize(polynomial, excluded=[0])(p, x=x), device="host")
    np.testing.assert_array_equal(np.asarray(f(np.array([2, 1]), np.arange(3))), [1, 3, 5])


def test_vectorize_names_what_it_lacks() -> None:
    f: Any = tg.jit(lambda x: tnp.vectorize(np.sum, signature="(n)->()")(x), device="host")
    with pytest.raises(errors.UnsupportedByTracerError, match="signature="):
        f(X)
    g: Any = tg.jit(lambda x: tnp.vectorize(lambda a: a)(x), device="host")
    with pytest.raises(ValueError, match="size 0"):
        g(np.zeros(0))
