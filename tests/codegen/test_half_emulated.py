"""Arithmetic and functions that kernels have for the 16-bit floats."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest
from emulator import COMPILER, Emulator, Memory
from half_programs import (
    ARITHMETIC,
    FUNCTIONS,
    HALVES,
    assert_arithmetic,
    assert_function,
    assert_same_bits,
    digits_of,
    quotients_in_doubt,
)
from kernels import axes, buffer, call, load, node, plan, store

from lowering.codegen import unit_source
from lowering.plan.kernel import MapNest

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")
by_name = pytest.mark.parametrize("dtype", HALVES, ids=str)


def run(name: str, folder: Path, *operands: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    size, dtype = operands[0].size, operands[0].dtype
    (i,) = axes(size)
    inputs, out = [buffer(dtype, size) for _ in operands], buffer(dtype, size)
    value = call(name, *(load(place, i) for place in inputs))
    only = node(name, MapNest((size,), (store(out, (i,), value),)))
    memory = Memory()
    for place, given in zip(inputs, operands, strict=True):
        memory.put(place, given)
    library = Path(mkdtemp(dir=folder))  # one that was loaded before would be found again
    return Emulator(unit_source(plan(only)), library).run(only, memory)[out]


@by_name
@pytest.mark.parametrize("ufunc", ARITHMETIC, ids=lambda ufunc: ufunc.__name__)
def test_arithmetic_has_numpys_bits(ufunc: np.ufunc, dtype: np.dtype[Any], tmp_path: Path) -> None:
    assert_arithmetic(ufunc, dtype, lambda x, y: run(ufunc.__name__, tmp_path, x, y))


@by_name
@pytest.mark.parametrize("ufunc", FUNCTIONS, ids=lambda ufunc: ufunc.__name__)
def test_functions_are_off_by_little_more_than_rounding(
    ufunc: np.ufunc, dtype: np.dtype[Any], tmp_path: Path
) -> None:
    assert_function(ufunc, dtype, lambda x: run(ufunc.__name__, tmp_path, x))


@by_name
def test_a_quotient_does_not_depend_on_the_last_bits_of_the_reciprocal(
    dtype: np.dtype[Any],
) -> None:
    """What the device's reciprocal may be off by, and twice of it."""
    pairs = 1 << 2 * digits_of(dtype)  # those of which nothing is scaled come first
    x, y = (operand[:pairs] for operand in quotients_in_doubt(dtype))
    expected = x / y
    dividend, divisor = x.astype(np.float32), y.astype(np.float32)
    inverse = (1 / y.astype(np.float64)).astype(np.float32)
    for units in (-2, -1, 1, 2):
        near = (inverse.view(np.int32) + units).view(np.float32)
        high = near * np.float32(1 - 2.0**-21)
        rest = (1 - high.astype(np.float64) * divisor).astype(np.float32)
        assert (rest > 0).all()
        if dtype == np.float16:
            low = dividend * (high * rest)
            quotient = (dividend.astype(np.float64) * high + low).astype(np.float32)
        else:
            quotient = dividend * (high + high * rest)
        assert_same_bits(quotient.astype(dtype), expected)
