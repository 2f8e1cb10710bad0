"""Reductions, norms and choices: arguments that change dtypes, shapes or what is raised."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.numpy_agreement import numpys_and_jitted

X = np.arange(12.0).reshape(3, 4) / 3 - 2
N = np.where(X > 1.5, np.nan, X)
Z = X + 1j * X[::-1]
I = np.arange(12, dtype=np.int8).reshape(3, 4)


def _eps(*arrays: Any) -> float:
    """The coarsest unit of what is computed with: NumPy rounds some steps to the dtype of x."""
    return max(float(np.finfo(a.dtype).eps) for a in arrays if a.dtype.kind in "fc")


def assert_as_numpy(call: Callable[..., Any], *arguments: Any) -> None:
    for value, got in numpys_and_jitted(call, *arguments):
        exact = value.dtype.kind not in "fc"
        rtol = 0 if exact else 32 * _eps(value, *arguments)
        np.testing.assert_allclose(got, value, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128, np.float32])
@pytest.mark.parametrize("array", [X, N, Z, Z.astype(np.complex64), I], ids=str)
@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd", "mean", "nanmean"])
def test_moments_in_a_dtype_have_it(name: str, array: Any, dtype: Any) -> None:
    function = getattr(np, name)
    if array.dtype.kind == "c" and np.dtype(dtype).kind != "c":
        assert_as_numpy(lambda x: function(x, axis=0, dtype=dtype).dtype.type(0), array)
        return
    assert_as_numpy(lambda x: function(x, dtype=dtype), array)
    assert_as_numpy(lambda x: function(x, axis=1, dtype=dtype, keepdims=True), array)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.float16])
def test_replacements_of_nan_to_num_are_not_replaced(dtype: Any) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 1, -0.0], dtype)
    values = [None, np.inf, -np.inf, np.nan, 2.0]
    for nan, high, low in itertools.product([0.0, *values[1:]], values, values):
        assert_as_numpy(lambda x: np.nan_to_num(x, nan=nan, posinf=high, neginf=low), x)  # noqa: B023


def test_replacements_of_nan_to_num_may_be_arrays() -> None:
    assert_as_numpy(lambda x, y: np.nan_to_num(x, nan=y), N, X * 2)
    assert_as_numpy(lambda x, y: np.nan_to_num(x, nan=y[0]), N, X * 2)
    with pytest.raises(TypeError, match="cannot put complex128 into an array of float64"):
        tracegraph.jit(lambda x, z: np.nan_to_num(x, nan=z), device="host")(N, Z)


def test_python_numbers_do_not_widen_what_is_compared() -> None:
    x = np.float32([2.0, 2.00002, 2.00003, 2.0001])
    for other in (2, 2.0, np.float32(2), np.float64(2)):
        assert_as_numpy(lambda x: np.isclose(x, other), x)  # noqa: B023
        assert_as_numpy(lambda x: np.isclose(other, x, rtol=np.float32(1e-6)), x)  # noqa: B023


def test_the_method_choose_takes_several_choices() -> None:
    def call(x: Any, a: Any, b: Any) -> Any:
        return x.choose(a * 1, b * 1), x.choose([a, b]), x.choose(a, b, a, mode="clip")

    i, a, b = np.array([0, 1, 0]), np.array([10, 20, 30]), np.array([1, 2, 3])
    assert_as_numpy(call, i, a, b)
    assert_as_numpy(lambda x, a, b: x.choose(a, b, out=a * 7), i, a, b)


@pytest.mark.parametrize("ord", [None, 1, 2, np.inf, 0, 3])
def test_norms_of_nothing_are_zero(ord: Any) -> None:
    assert_as_numpy(lambda x: np.linalg.norm(x, ord), np.zeros(0))
    assert_as_numpy(lambda x: np.linalg.vector_norm(x, ord=2 if ord is None else ord), np.zeros(0))


@pytest.mark.parametrize("ord", [None, 1, np.inf, 2, "nuc", "fro"])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (2, 0, 0)])
def test_norms_of_matrices_without_elements_are_zero(ord: Any, shape: Any) -> None:
    axes = (-2, -1)
    assert_as_numpy(lambda x: np.linalg.norm(x, ord, axes, keepdims=True), np.zeros(shape))


def test_singular_values_of_hermitian_matrices_without_elements() -> None:
    assert_as_numpy(lambda x: np.linalg.svd(x, False, hermitian=True), np.zeros((0, 0)))
    assert_as_numpy(lambda x: np.linalg.svdvals(x), np.zeros((0, 0)))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: np.linalg.norm(np.stack([x, x]), None, (0, 1, 2)), ValueError),
        (lambda x: np.linalg.norm(x, None, (0, 0)), ValueError),
        (lambda x: np.linalg.outer(x, x[0]), ValueError),
        (lambda x: np.nanmean(x, dtype=int), TypeError),
        (lambda x: np.nanvar(x, out=np.zeros_like(x[0, 0], int)), TypeError),
        (lambda x: np.median(x, axis=0, out=np.zeros_like(x)), ValueError),
        (lambda x: np.mean(x, axis=0, out=np.zeros_like(x)), ValueError),
        (lambda x: np.fft.fft(x[0], out=np.zeros_like(x)), ValueError),
        (lambda x: np.dot(x, x.T, out=np.zeros_like(x)), ValueError),
    ],
)
def test_what_numpy_refuses_is_refused(call: Callable[[Any], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        call(X)
    with pytest.raises(error):
        tracegraph.jit(call, device="host")(X)
