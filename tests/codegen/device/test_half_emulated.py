"""Arithmetic and functions that kernels have for the 16-bit floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lowering.codegen import unit_source
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import MapNest
from lowering.plan.nodes import KernelNode
from tests.cases.kernels.by_hand import axes, buffer, call, load, node, plan, store
from tests.emulation.emulator import COMPILER, Emulator, Memory
from tests.programs.half import (
    ARITHMETIC,
    FUNCTIONS,
    HALVES,
    assert_arithmetic,
    assert_function,
    assert_same_bits,
    digits_of,
    operands,
    quotients_in_doubt,
)

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")
Run = Callable[..., np.ndarray[Any, Any]]
by_name = pytest.mark.parametrize("dtype", HALVES, ids=str)


def kernel(
    name: str, dtype: np.dtype[Any], arity: int, size: int
) -> tuple[KernelNode, list[Buffer]]:
    """An op over arrays, with its operands and its result."""
    (i,) = axes(size)
    places = [buffer(dtype, size) for _ in range(arity + 1)]
    value = call(name, *(load(place, i) for place in places[:-1]))
    return node(name, MapNest((size,), (store(places[-1], (i,), value),))), places


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Applies an op to operands. The kernels, one for each size of operands, are one unit."""
    binary = {
        (ufunc, dtype, x.size): kernel(ufunc.__name__, dtype, 2, x.size)
        for dtype in HALVES
        for ufunc in ARITHMETIC
        for x, _ in operands(ufunc, dtype)
    }
    unary = {
        (ufunc, dtype, 1 << 16): kernel(ufunc.__name__, dtype, 1, 1 << 16)
        for dtype in HALVES
        for ufunc in FUNCTIONS
    }
    kernels = {**binary, **unary}
    nodes = [only for only, _ in kernels.values()]
    emulator = Emulator(unit_source(plan(*nodes)), tmp_path_factory.mktemp("half"))

    def apply(ufunc: np.ufunc, *given: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        only, (*inputs, out) = kernels[ufunc, given[0].dtype, given[0].size]
        memory = Memory()
        for place, array in zip(inputs, given, strict=True):
            memory.put(place, array)
        return emulator.run(only, memory)[out]

    return apply


@by_name
@pytest.mark.parametrize("ufunc", ARITHMETIC, ids=lambda ufunc: ufunc.__name__)
def test_arithmetic_has_numpys_bits(ufunc: np.ufunc, dtype: np.dtype[Any], run: Run) -> None:
    assert_arithmetic(ufunc, dtype, lambda x, y: run(ufunc, x, y))


@by_name
@pytest.mark.parametrize("ufunc", FUNCTIONS, ids=lambda ufunc: ufunc.__name__)
def test_functions_are_off_by_little_more_than_rounding(
    ufunc: np.ufunc, dtype: np.dtype[Any], run: Run
) -> None:
    assert_function(ufunc, dtype, lambda x: run(ufunc, x))


@by_name
def test_a_quotient_does_not_depend_on_the_last_bits_of_the_reciprocal(
    dtype: np.dtype[Any],
) -> None:
    """What the device's reciprocal may be off by, and twice of it."""
    pairs = 1 << 2 * digits_of(dtype)  # those that are not scaled come first
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
