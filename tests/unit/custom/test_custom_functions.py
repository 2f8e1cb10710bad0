"""tracegraph.elementwise: types, values on the host, vmap, derivatives, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.cases.custom_functions import (
    distinct,
    each_case,
    each_fold,
    exactly_one,
    flipped,
    folded,
    is_large,
    operands,
    picked,
    softplus,
    strongest,
    surrounded,
    swapped,
)
from tracegraph import errors
from tracegraph.dtypes import bfloat16
from tracegraph.testing import assert_traced_equals_eager, check_kernel

X = np.linspace(-2.0, 2.0, 9)


@each_case
def test_the_host_gives_the_values_of_the_reference(function: Any, dtypes: Any) -> None:
    def run(f: Any, *arguments: Any) -> Any:
        return tracegraph.jit(f, device="host")(*arguments)

    assert_traced_equals_eager(function, *operands(dtypes), ulps=0, ways={"run": run})
    assert_traced_equals_eager(surrounded(function), *operands(dtypes), ulps=0, ways={"run": run})


def test_calls_that_are_not_traced() -> None:
    assert softplus(0.0) == np.log(2)
    assert type(softplus(np.float32(0))) is np.float32
    assert type(softplus([0, 1])) is np.ndarray
    found = picked(tracegraph.asarray([1, 3]), 2)
    assert isinstance(found, tracegraph.Array)
    np.testing.assert_array_equal(np.asarray(found), [2, 9])
    np.testing.assert_array_equal(picked(np.arange(3)[:, np.newaxis], [0, 1]).shape, (3, 2))


@pytest.mark.parametrize(
    ("function", "arguments", "dtype"),
    [
        (softplus, ("int8",), np.float16),
        (softplus, ("bool",), np.float16),
        (softplus, ("uint16",), np.float32),
        (softplus, ("int64",), np.float64),
        (softplus, (bfloat16,), bfloat16),
        (picked, ("int8", "uint8"), np.int16),
        (picked, ("bool", "bool"), np.int8),
        (picked, ("int32", "float32"), np.float64),
        (picked, ("float32", 1.5), np.float32),
        (picked, ("int16", 3), np.int16),
        (picked, (2, 3), np.int64),
        (is_large, ("float16",), np.bool_),
    ],
)
def test_dtypes_are_promoted_as_numpys(function: Any, arguments: Any, dtype: Any) -> None:
    args = [np.ones(2, a) if isinstance(a, (str, np.dtype)) else a for a in arguments]
    assert function(*args).dtype == dtype
    arrays = [a for a in args if isinstance(a, np.ndarray)]
    rest = args[len(arrays) :]
    program = tracegraph.jit(lambda *xs: function(*xs, *rest), device="host").trace(*arrays)
    assert [t.dtype for t in program.program.out_types] == [dtype]


def test_the_dtype_of_the_result_may_be_declared() -> None:
    counted = []

    def whole(x: Any) -> Any:
        counted.append(x)
        return np.floor(x).astype(np.int32)

    for out in (np.int32, "int32", lambda dtype: np.dtype("int32")):
        function = tracegraph.elementwise(whole, cuda="int(floor({0}))", out=out)
        counted.clear()
        assert function(X).dtype == np.int32
        assert len(counted) == 1
    wrong = tracegraph.elementwise(whole, cuda="floor({0})", out=np.float64)
    with pytest.raises(errors.KernelResultError, match=r"declared f64\[9\], returned i32\[9\]"):
        wrong(X)


def test_it_is_fused_with_what_surrounds_it() -> None:
    lowered = tracegraph.jit(lambda x: (softplus(x + 1) * 2).sum(), device="cuda").lower(X)
    (node,) = lowered.plan.graph.nodes
    assert node.kind == "kernel"
    assert "custom._softplus(add(" in str(lowered)
    assert lowered.source.count("log1p(exp(a0))") == 1


def test_names_in_headers_do_not_clash() -> None:
    lowered = tracegraph.jit(lambda x: picked(x, 1) + swapped(x, 1) + picked(x, 2), device="cuda")
    source = lowered.lower(X).source
    assert source.count("X helper(X x, X y)") == 2
    assert source.count("namespace tg_custom_") == 2


def test_lanes() -> None:
    x, y = np.arange(6.0).reshape(2, 3), np.array([1.0, 4.0])
    found = tracegraph.vmap(picked)(x, y)
    np.testing.assert_array_equal(found, picked(x, y[:, np.newaxis]))


def test_derivatives() -> None:
    gradient = tracegraph.grad(lambda x: softplus(x).sum())(X)
    np.testing.assert_allclose(gradient, 1 / (1 + np.exp(-X)), rtol=1e-15)
    second = tracegraph.jit(tracegraph.grad(tracegraph.grad(softplus)), device="host")(0.5)
    s = 1 / (1 + np.exp(-0.5))
    assert float(second) == pytest.approx(s * (1 - s))
    dx, dy = tracegraph.grad(lambda x, y: (picked(x, y) * x).sum(), argnums=(0, 1))(X, X[::-1])
    up = X[::-1] < X
    np.testing.assert_array_equal(dx, np.where(up, 3 * X * X, X[::-1]))
    np.testing.assert_array_equal(dy, np.where(up, 0, X))
    _, t = tracegraph.jvp(lambda x: picked(x, 0.5), (X,), (np.ones(9),))
    np.testing.assert_array_equal(t, np.where(X > 0.5, 2 * X, 0))


def test_a_constant_derivative() -> None:
    total = tracegraph.elementwise(lambda x, y: x - y, cuda="{0} - {1}", derivative=(1, -1))
    assert tracegraph.grad(total, argnums=(0, 1))(3.0, 4.0) == (1.0, -1.0)


def test_without_a_derivative() -> None:
    with pytest.raises(errors.DerivativeError, match="declared without derivative="):
        tracegraph.grad(lambda x: swapped(x, 1.0))(2.0)
    assert tracegraph.grad(lambda x: np.where(is_large(x), x, 0))(3.0) == 1  # a bool has none


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"reference": 3}, "takes a function of NumPy arrays, not 3"),
        ({"reference": lambda *x: x}, "must have one or more positional parameters"),
        ({"reference": lambda: 3}, "must have one or more positional parameters"),
        ({"cuda": 3}, "cuda must be text"),
        ({"cuda": {}}, "cuda must be text"),
        ({"cuda": {"float": "{0}"}}, "cuda has a text for 'float'"),
        ({"cuda": "{1}"}, r"must be text with \{0\} to \{0\}"),
        ({"cuda": "{x}"}, "must be text with"),
        ({"cuda": "{0"}, "other braces doubled"),
        ({"header": "#define x 3"}, "preprocessor directives"),
        ({"header": "int a;\n  # include <a>"}, "preprocessor directives"),
        ({"derivative": (1, 1)}, "for each of 1 operands, not 2 of them"),
        ({"derivative": 3}, "not 3"),
    ],
)
def test_declarations_that_cannot_work(given: dict[str, Any], problem: str) -> None:
    options = {"reference": lambda x: x, "cuda": "{0}", **given}
    with pytest.raises(errors.CustomKernelError, match=problem):
        tracegraph.elementwise(options.pop("reference"), **options)


def test_headers_may_have_pragmas() -> None:
    tracegraph.elementwise(lambda x: x, cuda="{0}", header="#pragma nv_diag_suppress 177")


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda x: softplus(x, x), "takes 1 arrays, got 2"),
        (lambda x: softplus(x + 0j), r"has no text for c128\[9\]; its texts are for kinds f"),
        (flipped, r"has no text for f64\[9\]; its texts are for kinds b"),
    ],
)
def test_calls_that_cannot_work(traced: bool, call: Any, problem: str) -> None:
    run = tracegraph.jit(lambda x: call(x), device="host") if traced else call
    with pytest.raises(errors.CustomKernelError, match=problem):
        run(X)


@pytest.mark.parametrize("reference", [lambda x: x.sum(), lambda x: x[:0], lambda x: np.stack([x])])
def test_a_reference_that_is_not_elementwise(reference: Any) -> None:
    function = tracegraph.elementwise(reference, cuda="{0}")
    with pytest.raises(errors.KernelResultError, match="result for one element"):
        function(X)


def test_a_reference_cannot_write_to_its_arguments() -> None:
    function = tracegraph.elementwise(lambda x: np.add(x, 1, out=x), cuda="{0}", out=np.float64)
    with pytest.raises(ValueError, match="read-only"):
        function(X)


def test_check_kernel_takes_it() -> None:
    check_kernel(softplus, X, device="host")


# reductions


@each_fold
def test_the_host_folds_as_the_reference(fold: Any, dtype: Any) -> None:
    def run(f: Any, *arguments: Any) -> Any:
        return tracegraph.jit(f, device="host")(*arguments)

    assert_traced_equals_eager(folded(fold), distinct(dtype), ulps=0, ways={"run": run})


def test_folds_of_numpy_arrays() -> None:
    x = np.array([[1, -5, 2], [-3, 2, 1]])
    assert strongest(x) == -5
    assert type(strongest(x)) is np.int64
    np.testing.assert_array_equal(strongest(x, axis=0), [-3, -5, 2])
    np.testing.assert_array_equal(strongest(x, axis=(0, -1), keepdims=True), [[-5]])
    np.testing.assert_array_equal(strongest.accumulate(x, -1), [[1, -5, -5], [-3, -3, -3]])
    np.testing.assert_array_equal(strongest(x[:0], axis=0), [0, 0, 0])
    np.testing.assert_array_equal(strongest(x, axis=()), x)
    assert exactly_one([True, True, True])
    assert isinstance(strongest(tracegraph.asarray(x), 0), tracegraph.Array)


def test_what_a_fold_reads_is_fused_with_it() -> None:
    lowered = tracegraph.jit(lambda x: strongest(x * 2, axis=1) + 1, device="cuda")
    (node,) = lowered.lower(np.ones((4, 1000))).nodes
    assert "custom.<lambda>" in node.text
    assert lowered.lower(np.ones((4, 1000))).source.count("X helper(X x, X y)") == 1


def test_folds_of_lanes() -> None:
    x = distinct(np.dtype(float))
    np.testing.assert_array_equal(tracegraph.vmap(strongest)(x), strongest(x, axis=1))
    found = tracegraph.vmap(strongest.accumulate, in_axes=1)(x)
    np.testing.assert_array_equal(found, strongest.accumulate(x.T, 1))


def test_folds_that_cannot_work() -> None:
    with pytest.raises(errors.CustomKernelError, match="takes a function of two NumPy arrays"):
        tracegraph.reduction(3, cuda="{0}", identity=0)
    with pytest.raises(errors.CustomKernelError, match="has no text for c128"):
        strongest(X + 0j)
    with pytest.raises(errors.KernelResultError, match=r"declared f64\[1\], returned bool\[1\]"):
        tracegraph.reduction(np.less, cuda="{0}", identity=0)(X)
    with pytest.raises(errors.CustomKernelError, match="its identity -1 is no uint8"):
        tracegraph.reduction(np.maximum, cuda={"u": "{0}"}, identity=-1)(np.ones(3, np.uint8))
    with pytest.raises(np.exceptions.AxisError):
        strongest(X, axis=1)
