"""The record of a corpus program, and the arrays that programs are given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Case:
    """A function and arguments for it; `ulps` is how far real results may be from NumPy's.

    Zero ulps stand for bit equality: the program only does what IEEE 754 rounds in one way, or its
    numbers are small integers, whose sums are exact in any order.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    ulps: int


CASES: dict[str, Case] = {}


def program(
    *arguments: Any, ulps: int = 0, name: str | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a function, called on these arguments, to `CASES`."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        key = name or function.__name__
        assert key not in CASES, f"two programs are called {key}"
        CASES[key] = Case(key, function, arguments, ulps)
        return function

    return add


def whole(*shape: int, dtype: Any = np.float64, seed: int = 0, low: int = -9) -> Any:
    """Integers from `low` to 9, in any dtype: sums and products of them are exact."""
    numbers = np.random.default_rng(seed).integers(low, 10, shape)
    return np.asarray(numbers).astype(dtype)


def normal(*shape: int, dtype: Any = np.float64, seed: int = 0) -> Any:
    """Normally distributed numbers; complex dtypes get both parts."""
    random = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "c":
        return (random.normal(size=shape) + 1j * random.normal(size=shape)).astype(dtype)
    return random.normal(size=shape).astype(dtype)


def positive(*shape: int, dtype: Any = np.float64, seed: int = 0) -> Any:
    """Numbers from 0.1 to 2: their sums lose nothing by cancellation."""
    return np.random.default_rng(seed).uniform(0.1, 2, shape).astype(dtype)
