"""float16 arithmetic that kernels do as such gives NumPy's bits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emulator import COMPILER, Emulator, Memory
from half_programs import assert_same_bits, every_half, quotients_in_doubt, special_operands
from kernels import axes, buffer, call, load, node, plan, store

from lowering.codegen import unit_source
from lowering.kernel import MapNest

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")


def run(name: str, folder: Path, *operands: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    size = operands[0].size
    (i,) = axes(size)
    inputs, out = [buffer("float16", size) for _ in operands], buffer("float16", size)
    value = call(name, *(load(place, i) for place in inputs))
    only = node(name, MapNest((size,), (store(out, (i,), value),)))
    memory = Memory()
    for place, given in zip(inputs, operands, strict=True):
        memory.put(place, given)
    return Emulator(unit_source(plan(only)), folder).run(only, memory)[out]


@pytest.mark.parametrize("ufunc", [np.add, np.subtract, np.multiply, np.divide])
def test_arithmetic_with_special_operands(
    ufunc: Callable[..., np.ndarray[Any, Any]], tmp_path: Path
) -> None:
    x, y = special_operands()
    with np.errstate(all="ignore"):
        assert_same_bits(run(ufunc.__name__, tmp_path, x, y), ufunc(x, y))


def test_every_quotient_of_significands(tmp_path: Path) -> None:
    x, y = quotients_in_doubt()
    assert_same_bits(run("divide", tmp_path, x, y), x / y)


def test_every_exponential(tmp_path: Path) -> None:
    x = every_half()
    found = run("exp", tmp_path, x)
    with np.errstate(all="ignore"):
        exact = np.exp(x.astype(np.float64))
        expected = exact.astype(np.float16)
        finite = np.isfinite(expected)
        off = np.abs(found.astype(np.float64) - exact)[finite]
        unit = np.spacing(expected).astype(np.float64)[finite]
    np.testing.assert_array_equal(np.isnan(found), np.isnan(x))
    assert (found[~finite & ~np.isnan(x)] == np.inf).all()
    assert (off <= 0.51 * unit).all()


def test_a_quotient_does_not_depend_on_the_last_bits_of_the_reciprocal() -> None:
    """What the device's reciprocal may be off by, and twice of it."""
    x, y = (operand.astype(np.float32) for operand in quotients_in_doubt())
    expected = (x.astype(np.float64) / y).astype(np.float16)
    inverse = (1 / y.astype(np.float64)).astype(np.float32)
    for units in (-2, -1, 1, 2):
        near = (inverse.view(np.int32) + units).view(np.float32)
        guess = x * near
        rest = (x.astype(np.float64) - guess.astype(np.float64) * y).astype(np.float32)
        quotient = (guess + rest.astype(np.float64) * near).astype(np.float32)
        assert_same_bits(np.where(np.abs(rest) > 0, quotient, guess).astype(np.float16), expected)
