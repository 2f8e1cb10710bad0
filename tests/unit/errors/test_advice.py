"""What errors advise: what loses nothing, for the function that was called."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.compiled import host_jit
from tracegraph import errors
from tracegraph.dtypes import bfloat16

X = np.ones(3)


@pytest.mark.parametrize(
    ("given", "factor", "start"),
    [
        (np.int64(3), 0.5, "float64"),
        (np.arange(3), 0.5, "float64"),
        (np.int32(3), np.float32(0.5), "float64"),
        (np.int8(3), np.float32(0.5), "float32"),
        (np.bool_(True), np.float32(0.5), "float32"),
        (np.bool_(True), np.int32(2), "int32"),
        (np.float32(3), np.complex64(1j), "complex64"),
    ],
)
def test_a_carry_that_a_result_does_not_fit_starts_wider(
    given: Any, factor: Any, start: str
) -> None:
    def loop(c: Any) -> Any:
        return tracegraph.fori_loop(0, 2, lambda i, c: c * factor, c)

    with pytest.raises(errors.LeafMismatchError, match=f"start with {start}, ") as caught:
        host_jit(loop)(given)
    assert str(given.dtype) not in str(caught.value).partition("start with")[2]
    wider = np.asarray(given).astype(start)
    np.testing.assert_array_equal(host_jit(loop)(wider), loop(wider))


def test_a_carry_of_less_precision_may_be_kept() -> None:
    def loop(c: Any) -> Any:
        return tracegraph.fori_loop(0, 2, lambda i, c: c * X, c)

    with pytest.raises(errors.LeafMismatchError, match=r"cast one, .*\.astype\(numpy\.float32\)"):
        host_jit(loop)(np.float32(X))


def test_dtypes_without_a_common_one_have_an_advice() -> None:
    def loop(c: Any) -> Any:
        return tracegraph.fori_loop(0, 2, lambda i, c: c.astype(bfloat16), c)

    with pytest.raises(errors.LeafMismatchError, match=r"\.astype"):
        host_jit(loop)(np.int64(3))


@pytest.mark.parametrize(
    ("call", "order"),
    [
        (lambda x: tracegraph.while_loop(x, abs, abs), "while_loop(cond_fun, body_fun, init)"),
        (lambda x: tracegraph.fori_loop(0, 3, x, abs), "fori_loop(lower, upper, body_fun, init)"),
        (lambda x: tracegraph.scan(x, abs, x), "scan(f, init, xs)"),
        (lambda x: tracegraph.map(x, abs), "map(f, xs)"),
        (lambda x: tracegraph.cond(abs, x, abs), "cond(pred, true_fun, false_fun, *operands)"),
    ],
)
def test_arguments_in_another_order(call: Callable[[Any], Any], order: str) -> None:
    for run in (call, host_jit(call)):
        with pytest.raises(errors.ControlFlowError) as caught:
            run(X)
        assert f"the order is {order}" in str(caught.value)


def test_a_python_int_beyond_64_bits_names_its_argument() -> None:
    f = host_jit(lambda h: h["a"][0])
    with pytest.raises(OverflowError, match=r"argument h\['a'\]\[0\] of .* is .*64 bits"):
        f({"a": [2**70]})
    assert f({"a": [7]}) == 7


def test_recursion_in_a_branch_never_ends() -> None:
    def factorial(n: Any) -> Any:
        return tracegraph.cond(n < 2, lambda n: n, lambda n: n * factorial(n - 1), n)

    for _ in range(2):
        with pytest.raises(errors.EndlessTraceError, match=r"tracegraph\.while_loop") as caught:
            host_jit(factorial)(3)
        assert isinstance(caught.value, RecursionError)
        assert "<lambda> (test_advice.py:" in str(caught.value)
    assert host_jit(lambda n: tracegraph.cond(n < 2, lambda: n, lambda: -n))(3) == -3


def test_methods_that_write_advise_the_function_that_gives_a_new_array() -> None:
    with pytest.raises(errors.ImmutableArrayError, match=r"write `x = numpy.sort\(x, axis\)`"):
        tracegraph.asarray(X).sort()
    with pytest.raises(errors.TracerWriteError, match=r"write `x = numpy.sort\(x, axis\)`"):
        host_jit(lambda x: x.sort())(X)
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+="):
        operator.iadd(tracegraph.asarray(X), "a")
