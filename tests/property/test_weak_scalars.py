"""Programs of Python's numbers: every pass leaves a well-formed program of the same values."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracegraph
from tracegraph.ir import interpret
from tracegraph.ir.program import Program
from tracegraph.ir.verify import verify
from tracegraph.passes import (
    compose_views,
    cse,
    dce,
    fold,
    inline,
    inline_calls,
    optimize,
    simplify,
    tidy_captures,
    with_dead_lanes_isolated,
)
from tracegraph.testing import assert_traced_equals_eager

Function = Callable[..., Any]
Expression = Callable[[Any, Any], Any]
"""Of a number and an array."""

PASSES = (
    with_dead_lanes_isolated,
    dce,
    cse,
    fold,
    simplify,
    compose_views,
    inline,
    tidy_captures,
    inline_calls,
    optimize,
)

EXPONENTS = (2, 2.0, 0.5, -1, -1.0, 1, 1.0, 0, 3, -0.5, -2)
CONSTANTS = (0, 1, 2, -1, 1.0, 0.5, -0.0, 2.0)

UNARY: dict[str, Expression] = {
    "negative": lambda x, _: -x,
    "abs": lambda x, _: abs(x),
    "sin": lambda x, _: np.sin(x),
    "square": lambda x, _: np.square(x),
    "view": lambda x, _: np.reshape(x, (1,))[0],
    "array": lambda x, v: (x * v)[0],
    "where": lambda x, _: np.where(x > 0, x, x),
    "branch": lambda x, _: tracegraph.cond(x > 0.5, lambda x: x**2, lambda x: x * 2, x),
    "counted": lambda x, _: tracegraph.fori_loop(0, 3, lambda i, c: c + (i + 1) ** 2, x),
    "powers": lambda x, _: tracegraph.fori_loop(1, 3, lambda i, c: c + i**-1, x),
    "roots": lambda x, _: tracegraph.fori_loop(1, 3, lambda i, c: c + i**0.5, x),
    "while": lambda x, _: tracegraph.while_loop(lambda c: c < 3, lambda c: c**2 + 1, x),
    "scan": lambda x, v: tracegraph.scan(lambda c, y: (c + y, c**2), x * 1.0, v * 1.0)[1][-1],
    "lanes": lambda x, v: tracegraph.vmap(lambda y: x**2 * y)(v)[0],
    "checkpoint": lambda x, _: tracegraph.checkpoint(lambda x: x**2)(x),
}

BINARY: dict[str, Expression] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "maximum": lambda x, y: np.maximum(x, y),
}


@st.composite
def expressions(draw: st.DrawFn, depth: int = 4) -> tuple[str, Expression]:
    """Expressions of a Python number x and an array v, and their text."""
    kind = draw(st.integers(0, 4)) if depth else 0
    if kind == 0:
        if draw(st.booleans()):
            return "x", lambda x, v: x
        constant = draw(st.sampled_from(CONSTANTS))
        return f"(x + {constant})", lambda x, v: x + constant
    text, inner = draw(expressions(depth - 1))
    if kind == 1:
        exponent = draw(st.sampled_from(EXPONENTS))
        return f"{text}**{exponent}", lambda x, v: inner(x, v) ** exponent
    if kind in (2, 3):
        name = draw(st.sampled_from(sorted(UNARY)))
        return f"{name}({text})", lambda x, v: UNARY[name](inner(x, v), v)
    other_text, other = draw(expressions(depth - 1))
    name = draw(st.sampled_from(sorted(BINARY)))
    combined = BINARY[name]
    return f"{name}({text}, {other_text})", lambda x, v: combined(inner(x, v), other(x, v))


def transformed(function: Function) -> dict[str, Function]:
    """The function, and what transforms make of it."""

    def real(x: Any, v: Any) -> Any:
        return function(x, v) * 1.0

    return {
        "function": function,
        "jvp": lambda x, v: tracegraph.jvp(lambda x: real(x, v), (x,), (1.0,)),
        "linearize": lambda x, v: tracegraph.linearize(lambda x: real(x, v), x)[1](1.0),
        "lanes": lambda x, v: tracegraph.vmap(lambda y: function(x, v) * y)(v),
    }


def bits(program: Program, *inputs: Any) -> list[tuple[str, bytes]]:
    with np.errstate(all="ignore"):
        found = interpret.run(program, *inputs)
    return [(str(y.dtype), np.where(y == y, y, np.nan).tobytes()) for y in map(np.asarray, found)]


def check(function: Function, *arguments: Any) -> None:
    """Every pass leaves a well-formed program of the same values."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = tracegraph.jit(function).trace(*arguments).program
    inputs = [np.asarray(x) for x in arguments]
    wanted = bits(verify(program), *inputs)
    for apply_pass in PASSES:
        assert bits(verify(apply_pass(program)), *inputs) == wanted, apply_pass.__name__


@pytest.mark.parametrize("name", transformed(lambda x, v: x))
@given(drawn=expressions(), number=st.sampled_from([0.5, 1.5, 2.0]))
@settings(max_examples=30)
def test_passes_keep_programs_of_weak_scalars_well_formed(
    name: str, drawn: tuple[str, Expression], number: float
) -> None:
    check(transformed(drawn[1])[name], number, np.array([1.5, 2.5], np.float32))


@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("number", [5.0, 0.25, 4, 3j])
def test_powers_of_numbers_are_those_of_python(number: Any, exponent: Any) -> None:
    assert_traced_equals_eager(lambda x: x**exponent, number, ulps=1)
    assert_traced_equals_eager(lambda x, v: x**exponent * v, number, np.float32([1, 2]), ulps=1)


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_powers_of_loop_indices_are_those_of_python(exponent: Any) -> None:
    def function(n: Any) -> Any:
        known = tracegraph.fori_loop(1, 5, lambda i, c: c + i**exponent, 0.0)
        return known, tracegraph.fori_loop(1, n, lambda i, c: c + i**exponent, 0.0)

    assert_traced_equals_eager(function, 5, ulps=2)
