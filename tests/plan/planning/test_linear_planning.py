"""What planning does for one construct does not grow with how many there are: calls are counted."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph import ArrayType, cond, fori_loop, switch

VECTOR = ArrayType("float32", (64,))
NUMBER = ArrayType("int64")


def branches(n: int) -> Callable[..., Any]:
    return lambda k, x: switch(k, [lambda x, i=i: x + i for i in range(n)], x)


def conditionals(n: int) -> Callable[..., Any]:
    def apply(_: Any, x: Any) -> Any:
        for i in range(n):
            x = cond(x[0] > i, np.sin, np.cos, x)
        return x

    return apply


def loops(n: int) -> Callable[..., Any]:
    def apply(_: Any, x: Any) -> Any:
        for _ in range(n):
            x = fori_loop(0, 3, lambda i, c: c * 0.5, x)
        return x

    return apply


def sums_kept(n: int) -> Callable[..., Any]:
    return lambda _, x: np.stack([np.sum(x * i) for i in range(n)])


def carries(n: int) -> Callable[..., Any]:
    def halve(_: Any, carry: list[Any]) -> list[Any]:
        return [c * 0.5 for c in carry]

    return lambda _, x: fori_loop(0, 10, halve, [x * i for i in range(n)])


def rotated_carries(n: int) -> Callable[..., Any]:
    def rotate(_: Any, carry: list[Any]) -> list[Any]:
        return carry[1:] + carry[:1]

    return lambda _, x: fori_loop(0, 10, rotate, [x * i for i in range(n)])


def calls_each(make: Callable[[int], Callable[..., Any]], n: int) -> float:
    """How many functions are called to plan a program of `n` constructs, for each of them."""
    traced = tracegraph.jit(make(n), device="cuda").trace(NUMBER, VECTOR)
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        _ = traced.lower().plan
    finally:
        sys.setprofile(before)
    return calls / n


@pytest.mark.parametrize(
    "make", [branches, conditionals, loops, sums_kept, carries, rotated_carries]
)
def test_constructs_take_no_more_calls_each_the_more_there_are(
    make: Callable[[int], Callable[..., Any]],
) -> None:
    calls_each(make, 5)  # what is remembered for good is made now
    assert calls_each(make, 400) < 1.2 * calls_each(make, 100)
