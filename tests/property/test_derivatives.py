"""Derivatives of random programs: forwards against backwards, and against complex steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

import tracegraph
from tracegraph import (
    checkpoint,
    cond,
    errors,
    fori_loop,
    grad,
    jvp,
    linearize,
    scan,
    vjp,
    while_loop,
)
from tracegraph.ir.program import walk
from tracegraph.ir.verify import verify
from tracegraph.testing import RandomProgram, programs

Vector = Any
Step = Callable[[Vector], Vector]

W = np.random.default_rng(5).normal(size=(3, 3)) / 2

STEPS: dict[str, Step] = {
    "sin": np.sin,
    "tanh": np.tanh,
    "exp": lambda x: np.exp(-x * x),
    "product": lambda x: np.sin(x * x[::-1]) + 0.5,
    "quotient": lambda x: x / (2 + np.cos(x) ** 2),
    "matmul": lambda x: W @ x,
    "sum": lambda x: x + np.sin(x.sum()),
    "cumsum": lambda x: np.cumsum(x) / 2,
    "prod": lambda x: np.sin(x + x.prod()),
    "gather": lambda x: x[np.array([2, 0, 0])] + x[1],
    "concatenate": lambda x: np.concatenate([x[1:], np.cos(x[:1])]),
    "power": lambda x: (0.6 + np.sin(x) / 2.5) ** 2.5,
    "write": lambda x: _written(x),
}


def _written(x: Vector) -> Vector:
    y = x * 1
    y[1] = np.sin(y[0] * y[2])
    return y


def _in_turn(steps: Sequence[Step]) -> Step:
    def run(x: Vector) -> Vector:
        for step in steps:
            x = step(x)
        return x

    return run


def _looped(body: Step) -> Step:
    return lambda x: fori_loop(0, 3, lambda i, c: body(c) + 0.1 * i, x)


def _scanned(body: Step) -> Step:
    def run(x: Vector) -> Vector:
        last, ys = scan(lambda c, t: (body(c) * t, c[0]), x, np.linspace(0.5, 1, 3))
        return last + ys

    return run


def _chosen(body: Step) -> Step:
    return lambda x: cond(x[0].real > 0.1, body, lambda x: x * 0.5 + body(x * 0.3), x)


def _bounded(body: Step) -> Step:
    def run(x: Vector) -> Vector:
        state = while_loop(
            lambda c: c[0] < 2, lambda c: (c[0] + 1, body(c[1])), (0, x), max_steps=5
        )
        return state[1]

    return run


WRAPPERS: dict[str, Callable[[Step], Step]] = {
    "fori_loop": _looped,
    "scan": _scanned,
    "cond": _chosen,
    "while_loop": _bounded,
    "checkpoint": lambda body: checkpoint(body),
}


class Smooth:
    """A smooth function of a vector, with nested control flow; `text` says what it does."""

    def __init__(self, step: Step, text: str) -> None:
        self.step = step
        self.text = text

    def __repr__(self) -> str:
        return self.text


@st.composite
def smooth_programs(draw: st.DrawFn, depth: int = 2) -> Smooth:
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        if depth and draw(st.booleans()):
            name = draw(st.sampled_from(sorted(WRAPPERS)))
            inner = draw(smooth_programs(depth - 1))
            parts.append(Smooth(WRAPPERS[name](inner.step), f"{name}({inner.text})"))
        else:
            name = draw(st.sampled_from(sorted(STEPS)))
            parts.append(Smooth(STEPS[name], name))
    return Smooth(_in_turn([p.step for p in parts]), ", ".join(p.text for p in parts))


X = np.array([0.4, -0.3, 0.2])


@given(program=smooth_programs())
def test_gradients_agree_with_complex_steps(program: Smooth) -> None:
    def function(x: Any) -> Any:
        return (program.step(x) * np.array([1.0, 2.0, 3.0])).sum()

    gradient = grad(function)(X)
    for i in range(3):
        moved = X.astype(complex)
        moved[i] += 1e-30j
        expected = np.imag(np.asarray(function(moved))) / 1e-30
        np.testing.assert_allclose(gradient[i], expected, rtol=1e-10, atol=1e-12)
    _, forward = jvp(function, (X,), (X,))
    np.testing.assert_allclose(forward, gradient @ X, rtol=1e-10, atol=1e-12)
    traced = tracegraph.jit(grad(function), device="host").trace(X)
    verify(traced.program)
    verify(traced.optimized)


@given(program=smooth_programs(depth=1))
def test_second_derivatives_agree_with_complex_steps(program: Smooth) -> None:
    def function(x: Any) -> Any:
        return (program.step(x) * np.array([1.0, 2.0, 3.0])).sum()

    def slope(x: Any) -> Any:
        return jvp(function, (x,), (x * 0 + 1,))[1]

    found = jvp(grad(function), (X,), (np.ones(3),))[1]
    np.testing.assert_allclose(grad(slope)(X), found, rtol=1e-9, atol=1e-11)
    expected = np.imag(np.asarray(slope(X + 1e-30j))) / 1e-30
    np.testing.assert_allclose(found.sum(), expected, rtol=1e-9, atol=1e-11)


@given(program=programs(max_steps=6))
def test_forwards_and_backwards_agree_on_programs_with_kinks(program: RandomProgram) -> None:
    """Of any dtypes, with integers, ties and writes: the two modes must share the conventions."""
    chosen = [i for i, x in enumerate(program.arguments) if x.dtype.kind == "f"]
    assume(chosen)

    function, x = program.function, program.arguments
    rng = np.random.default_rng(0)
    t = [
        np.asarray(rng.integers(-3, 4, v.shape), v.dtype) if i in chosen else None
        for i, v in enumerate(x)
    ]
    outs, tangents = jvp(function, x, t)
    try:
        _, pullback = vjp(function, *x)
    except (errors.ReverseLoopError, errors.DerivativeError):
        assume(False)
    cts = [np.asarray(rng.integers(-3, 4, np.shape(y)), np.asarray(y).dtype) for y in outs]
    cts = [ct if ct.dtype.kind == "f" else None for ct in cts]
    left = sum(np.sum(ct * s) for ct, s in zip(cts, tangents, strict=True) if ct is not None)
    right = sum(
        np.sum(g * v) for g, v in zip(pullback(tuple(cts)), t, strict=True) if v is not None
    )
    single = any(
        value.type.dtype == np.float32
        for eqn in walk(tracegraph.make_program(function)(*x).body)
        for value in eqn.outputs
    )
    np.testing.assert_allclose(left, right, rtol=1e-3 if single else 1e-10, atol=1e-6)


@given(program=programs(max_steps=6))
def test_linear_functions_agree_with_tangents_on_programs_with_kinks(
    program: RandomProgram,
) -> None:
    """Of any dtypes, with loops of unknown length, which run again."""
    function, x = program.function, program.arguments
    rng = np.random.default_rng(0)
    t = [
        np.asarray(rng.integers(-3, 4, v.shape), v.dtype) if v.dtype.kind == "f" else None
        for v in x
    ]
    outs, tangents = jvp(function, x, t)
    found, derivative = linearize(function, *x)
    for one, other in zip(found, outs, strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(derivative(*t), tangents, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            single = np.asarray(one).dtype.itemsize < 8
            np.testing.assert_allclose(one, other, rtol=1e-3 if single else 1e-10, atol=1e-6)
