"""Weak types: what Python scalars do to the dtype of a result."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from tracegraph.arrays.eager import apply
from tracegraph.ir.op import Op
from tracegraph.ir.types import ArrayType
from tracegraph.ops import arithmetic, comparison, floating, transcendental
from tracegraph.tracing.trace import trace_program

WEAK_INT = ArrayType(np.int64, (), weak=True)
F32 = ArrayType(np.float32, (3,))


def _traced(fun: Callable[..., Any], *types: ArrayType) -> ArrayType:
    return trace_program(lambda *args: [fun(*args)], types, "f").out_types[0]


def _result(op: Op, *types: ArrayType) -> ArrayType:
    return _traced(partial(apply, op), *types)


def test_arithmetic_of_weak_operands_stays_weak() -> None:
    assert str(_result(arithmetic.add, WEAK_INT, WEAK_INT)) == "~i64[]"


def test_true_division_of_weak_ints_is_a_weak_float() -> None:
    assert str(_result(arithmetic.divide, WEAK_INT, WEAK_INT)) == "~f64[]"


def test_a_quotient_of_weak_ints_bends_to_a_float32_array() -> None:
    def scale(n: object, x: object) -> object:
        return apply(arithmetic.multiply, apply(arithmetic.divide, n, 2), x)

    assert _traced(scale, WEAK_INT, F32) == F32


def test_functions_and_comparisons_of_weak_operands_are_strong() -> None:
    assert str(_result(transcendental.sin, WEAK_INT)) == "f64[]"
    assert str(_result(comparison.less, WEAK_INT, WEAK_INT)) == "bool[]"


def test_undefined_operands_are_named_with_what_the_op_takes() -> None:
    with pytest.raises(TypeError, match=r"^floor is not defined for c64\[3\].* cast .*f32"):
        _result(floating.floor, F32.with_dtype(np.complex64))
