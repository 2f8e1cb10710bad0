"""Each use of a traced value as a known one has its own error, which says what to do instead."""

from __future__ import annotations

import contextlib
import copy
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph.numpy as tnp
from tests.helpers.traced import trace
from tracegraph import Array, array_api, errors, jit
from tracegraph.ir.types import ArrayType
from tracegraph.tracing.trace import trace_program

SCALAR, VECTOR = np.float64(1.5), np.arange(3.0)
COUNT = np.int64(3)


def branch(x: Any) -> Any:
    if x > 0:
        return x
    return -x


def loop(x: Any) -> Any:
    while x < 10:
        x = x * 2
    return x


def fill(x: Any) -> Any:
    out = np.zeros(3)
    out[0] = x
    return out


CASES: list[tuple[Callable[[Any], Any], Any, type[Exception], str]] = [
    (branch, SCALAR, errors.TracerBoolError, "tracegraph.cond"),
    (loop, SCALAR, errors.TracerBoolError, "tracegraph.while_loop"),
    (bool, SCALAR, errors.TracerBoolError, "bool()"),
    (lambda x: x > 0 and x < 1, SCALAR, errors.TracerBoolError, "numpy.logical_and"),
    (lambda x: not x, SCALAR, errors.TracerBoolError, "numpy.logical_not(x)"),
    (lambda x: 1.0 in x, VECTOR, errors.TracerBoolError, "isin(1.0, x)"),
    (int, SCALAR, errors.TracerIntegerError, ".astype(int)"),
    (math.trunc, SCALAR, errors.TracerIntegerError, "int()"),
    (operator.index, COUNT, errors.TracerIndexError, "operator.index()"),
    (range, COUNT, errors.TracerIndexError, "tracegraph.fori_loop"),
    (lambda n: [10, 20, 30, 40][n], COUNT, errors.TracerIndexError, "tracegraph.switch"),
    (tnp.zeros, COUNT, errors.StaticArgumentError, "static_argnums"),
    (np.zeros, COUNT, errors.TracerIndexError, "static_argnums"),
    (lambda n: np.full(n, 1.0), COUNT, errors.TracerIndexError, "static_argnums"),
    (lambda n: VECTOR[n], COUNT, errors.TracerArrayError, "asarray(VECTOR)[n]"),
    (tnp.arange, COUNT, errors.StaticArgumentError, "numpy.arange"),
    (lambda n: tnp.zeros(5)[:n], COUNT, errors.TracerSliceError, "numpy.arange(size)"),
    (float, SCALAR, errors.TracerFloatError, ".astype(float)"),
    (math.sin, SCALAR, errors.TracerFloatError, "numpy.sin"),
    (complex, SCALAR, errors.TracerComplexError, ".astype(complex)"),
    (lambda x: f"{x:.3f}", SCALAR, errors.TracerFormatError, "tracegraph.debug.print"),
    (lambda x: x.item(), SCALAR, errors.TracerItemError, "x[i]"),
    (lambda x: x.tolist(), VECTOR, errors.TracerItemError, "return it"),
    (np.asarray, VECTOR, errors.TracerArrayError, "tracegraph.numpy.asarray"),
    (lambda x: np.array([x, x]), SCALAR, errors.TracerArrayError, "numpy.stack"),
    (lambda n: {1: 2}[n], COUNT, errors.TracerHashError, "tracegraph.switch"),
    (lambda n: n in {1, 2}, COUNT, errors.TracerHashError, "static_argnums"),
    (fill, SCALAR, errors.TracerFloatError, "tracegraph.numpy.zeros"),
    (list, SCALAR, errors.TracerIterationError, "tracegraph.scan"),
    (lambda x: x[x > 1], VECTOR, errors.BooleanMaskError, "numpy.where(x > 1, x, other)"),
    (np.nonzero, VECTOR, errors.ShapeDependentError, "numpy.nonzero"),
    (np.unique, VECTOR, errors.ShapeDependentError, "numpy.unique"),
    (np.argwhere, VECTOR, errors.ShapeDependentError, "numpy.argwhere"),
    (np.where, VECTOR, errors.ShapeDependentError, "three arguments"),
    (lambda x: np.compress(x > 1, x), VECTOR, errors.ShapeDependentError, "numpy.compress"),
    (lambda x: x.nonzero(), VECTOR, errors.ShapeDependentError, "numpy.nonzero(x, size=n)"),
    (lambda x: x.compress(x > 1), VECTOR, errors.ShapeDependentError, "size=n"),
]


@pytest.mark.parametrize(("function", "value", "error", "advice"), CASES)
def test_misuse_has_its_own_error_with_advice(
    function: Callable[[Any], Any], value: Any, error: type[Exception], advice: str
) -> None:
    with pytest.raises(error) as caught:
        trace_one(function, value)
    message = str(caught.value)
    assert type(caught.value) is error
    assert isinstance(caught.value, TypeError)
    assert advice in message
    dtype = {"f": "f64", "i": "i64"}[np.asarray(value).dtype.kind]
    assert dtype in message or "bool[" in message  # the value, or a comparison of it
    assert "argument 'x'" in message or "computed at test_misuse.py:" in message
    assert "at test_misuse.py:" in message


def trace_one(function: Callable[[Any], Any], value: Any) -> Any:
    type_ = ArrayType(np.asarray(value).dtype, np.shape(value))
    return trace_program(lambda x: [function(x)], [type_], "f", lambda: ["'x'"])


def test_every_misuse_error_stands_in_the_table() -> None:
    tested = {error for _, _, error, _ in CASES} | {errors.EscapedTracerError}
    classes = {x for x in vars(errors).values() if isinstance(x, type)}
    misuse = {x for x in classes if issubclass(x, errors.TracerMisuseError)}
    assert misuse - {errors.TracerMisuseError} == tested


def test_the_message_names_the_line_that_computed_the_value() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        return float(y)

    line = f.__code__.co_firstlineno + 1
    with pytest.raises(errors.TracerFloatError) as caught:
        trace(f, SCALAR)
    assert f"computed at test_misuse.py:{line}" in str(caught.value)
    assert f"at test_misuse.py:{line + 1}, in f" in str(caught.value)


def test_a_tracer_that_escaped_its_trace_says_where_it_was_made() -> None:
    kept = []

    def f(x: Any) -> Any:
        kept.append(x + 1)
        return x

    trace(f, VECTOR)
    with pytest.raises(errors.EscapedTracerError, match=r"computed at test_misuse\.py"):
        kept[0] + 1
    with pytest.raises(errors.EscapedTracerError, match="outside the function"):
        trace(lambda x: x + kept[0], VECTOR)
    with pytest.raises(errors.EscapedTracerError):
        kept[0][0] = 1


def test_what_needs_no_elements_works() -> None:
    def f(x: Any) -> Any:
        assert len(x) == 3
        assert x.shape == (3,)
        assert (x.ndim, x.size, x.nbytes, x.itemsize) == (1, 3, 24, 8)
        assert [v.shape for v in x] == [(), (), ()]
        assert repr(x) == "Tracer<f64[3]> from argument 0"
        assert "Tracer<f64[3]> computed at test_misuse.py:" in repr(x + 1)
        assert x.__array_namespace__() is array_api
        assert isinstance(x, Array)
        assert isinstance(x[x > 0], Array)
        assert issubclass(type(x), Array)
        assert copy.copy(x).shape == copy.deepcopy(x).shape == (3,)
        return x

    trace(f, VECTOR)


def test_what_arrays_have_and_traced_values_lack_is_named() -> None:
    with pytest.raises(errors.UnsupportedAttributeError, match=r"ndarray\.byteswap .*\n  at "):
        trace(lambda x: x.byteswap(), VECTOR)
    trace(lambda x: x if hasattr(x, "byteswap") else x + 1, VECTOR)


def test_what_nothing_has_is_named_with_the_value() -> None:
    with pytest.raises(AttributeError, match=r"f64\[3\] \(.*\) has no attribute 'summ'") as caught:
        trace(lambda x: x.summ(), VECTOR)
    assert caught.value.name == "summ"
    assert caught.value.obj.shape == (3,)  # for Python's suggestion: did you mean 'sum'?


def test_an_index_error_that_numpy_dropped_does_not_take_the_place_of_others() -> None:
    def f(n: Any) -> Any:
        with contextlib.suppress(TypeError):
            range(n)
        raise TypeError("of the user")

    with pytest.raises(TypeError, match="of the user"):
        trace(f, COUNT)


def test_length_of_a_scalar() -> None:
    with pytest.raises(TypeError, match="no axes"):
        trace(len, SCALAR)


@pytest.mark.parametrize("n", [3, np.int64(3), np.uint8(2)])
@pytest.mark.parametrize("fun", [lambda n: [1] * n, lambda n: n * (1, 2), lambda n: [] * (n + 1)])
def test_a_list_is_not_repeated_a_traced_number_of_times(fun: Any, n: Any) -> None:
    with pytest.raises(errors.TracerIndexError, match=r"\[x\] \* n"):
        jit(fun, device="host")(n)


def test_a_list_times_an_array_or_a_float_is_an_array() -> None:
    double = jit(lambda x: [1, 2] * x, device="host")
    np.testing.assert_array_equal(double(np.array([3, 4])), [3, 8])
    np.testing.assert_array_equal(double(2.5), [2.5, 5.0])
