"""The fast form of a function is the function itself, wherever its range says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="there is no wheel of llvmlite for this system")

import tracegraph.ops  # noqa: F401  (registers them)
from lowering.native.library.symbols import FAST_FORMS, Function, elementwise
from tests.unit.native.library.compiled_functions import Compiled
from tracegraph.dtypes import BOOL, bfloat16
from tracegraph.ir.op import get

NDArray = np.ndarray[Any, Any]
ONE_OPERAND = {"sin", "cos", "tan"}
DTYPES = [np.dtype(np.float16), bfloat16, np.dtype(np.float32), np.dtype(np.float64)]
LIMIT = 2.0**30
"""Of angles. The quotient of two operands is limited to 2**52."""


def points(count: int, dtype: np.dtype[Any]) -> tuple[NDArray, ...]:
    """Ordinary numbers, and those at the ends of the ranges."""
    random = np.random.default_rng(3)
    ends = [0.0, -0.0, 1.0, LIMIT, np.nextafter(LIMIT, 0), 2 * LIMIT, 1e18, 1e38, np.inf, np.nan]
    small, large = random.uniform(-100, 100, 200), np.exp2(random.uniform(-20, 40, 200))
    x = np.concatenate([small, large, ends])
    y = np.concatenate([small[::-1] / 9, np.exp2(random.uniform(-20, 9, 200)), ends[::-1]])
    with np.errstate(over="ignore"):
        return (x.astype(dtype), y.astype(dtype))[:count]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", sorted(FAST_FORMS))
def test_fast_forms_are_exact_in_their_ranges(name: str, dtype: np.dtype[Any]) -> None:
    arguments = (dtype,) * (1 if name in ONE_OPERAND else 2)
    exact = elementwise(get(name), {}, arguments, dtype)
    assert exact is not None
    assert exact.fast is not None
    fast, in_range = exact.fast
    compiled = Compiled(
        [exact, Function(fast, dtype, arguments, ""), Function(in_range, BOOL, arguments, "")]
    )
    operands = points(len(arguments), dtype)
    expected, found, inside = (compiled(number, *operands) for number in range(3))
    usual = slice(0, 200)
    assert inside[usual].all()
    assert not inside[~np.isfinite(operands[0].astype(np.float64))].any()
    same = (found == expected) & (np.signbit(found) == np.signbit(expected))
    assert (same | ((found != found) & (expected != expected)))[inside].all()
    if dtype == np.float64 and name in ONE_OPERAND:
        np.testing.assert_array_equal(inside, np.abs(operands[0]) <= LIMIT)


@pytest.mark.parametrize("name", ["exp", "power", "floor"])
def test_functions_without_slow_parts_have_no_other_form(name: str) -> None:
    double = np.dtype(np.float64)
    function = elementwise(get(name), {}, [double] * (2 if name == "power" else 1), double)
    assert function is not None
    assert function.fast is None
