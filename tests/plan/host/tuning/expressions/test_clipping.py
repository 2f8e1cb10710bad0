"""Maxima and minima with one number: clipped, with the bits that NumPy gives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tracegraph
from lowering.host.tuning.expressions.clipping import CLIP, LEAST_ELEMENTS
from tests.cases.host_nests import evaluated

SIGNED = [-0.0, 0.0, np.nan, np.inf, -np.inf, -0.0, 0.0, 1.5, -1.5]


def clips(function: Callable[..., object], *arguments: object) -> int:
    """How many calls of a function clip."""
    return sum(
        made.function is CLIP
        for program in evaluated(function, *arguments)
        for made in program.instructions
    )


def values(dtype: str, count: int = LEAST_ELEMENTS) -> np.ndarray:
    """Numbers of both signs, special ones among them."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return np.resize(np.array(SIGNED, kind), count)
    return np.random.default_rng(0).integers(0, 120, count).astype(kind)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint8", "int32"])
@pytest.mark.parametrize("ufunc", [np.maximum, np.minimum])
@pytest.mark.parametrize("number", [0, -1])
@pytest.mark.parametrize("first", [False, True])
def test_one_number_is_a_limit(dtype: str, ufunc: np.ufunc, number: int, first: bool) -> None:
    if np.dtype(dtype).kind == "u" and number < 0:
        number = 7

    def function(x: np.ndarray) -> np.ndarray:
        return ufunc(number, x) if first else ufunc(x, number)

    x = values(dtype)
    assert clips(function, x) == 1
    found = np.asarray(tracegraph.jit(function, device="host")(x))
    assert found.tobytes() == function(x).tobytes()


@pytest.mark.parametrize("number", [-0.0, np.nan, np.inf, -np.inf, 1.5])
@pytest.mark.parametrize("ufunc", [np.maximum, np.minimum])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_numbers_are_limits_too(number: float, ufunc: np.ufunc, dtype: str) -> None:
    x = values(dtype)
    found = np.asarray(tracegraph.jit(lambda x: ufunc(x, number), device="host")(x))
    assert found.tobytes() == ufunc(x, np.dtype(dtype).type(number)).tobytes()


def test_what_clipping_gives_another_sign_or_is_slow_of_is_left() -> None:
    assert clips(lambda x: np.maximum(x, -0.0), values("float32")) == 0
    assert clips(lambda x: np.maximum(-0.0, x), values("float32")) == 1
    assert clips(lambda x: np.maximum(x, 0), values("float32", LEAST_ELEMENTS - 1)) == 0
    assert clips(lambda x: np.maximum(x, 0), values("float16")) == 0
    assert clips(lambda x: np.maximum(x, 0), values("int64")) == 0
    assert clips(np.maximum, values("float32"), values("float32")) == 0
    assert clips(np.maximum, values("float32"), np.float32(2)) == 0
