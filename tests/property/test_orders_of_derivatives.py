"""Random programs of polynomials: derivatives of orders 1 to 4, by all transforms, are exact.

Every program computes polynomials of x with small coefficients, whose derivatives are known. The
same program runs with plain numbers in a polynomial ring, which is the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import Polynomial

import tracegraph
from tracegraph import (
    checkpoint,
    cond,
    custom_jvp,
    custom_vjp,
    fori_loop,
    grad,
    jacfwd,
    jacrev,
    jit,
    jvp,
    linearize,
    scan,
    vjp,
    vmap,
    while_loop,
)

Function = Callable[..., Any]


@custom_jvp
def cubed(x: Any) -> Any:
    """x³, whose equations have no derivative."""
    return tracegraph.stop_gradient(x * x * x)


cubed.defjvp(lambda p, t: (cubed(*p), 3 * squared(p[0]) * t[0]))


@custom_vjp
def squared(x: Any) -> Any:
    return tracegraph.stop_gradient(x * x)


squared.defvjp(
    lambda x: (squared(x), {"x": x}), lambda kept, ct: (ct * 2 * doubled(kept["x"]) / 2,)
)


@custom_vjp
def doubled(x: Any) -> Any:
    """Its pullback is its residual."""
    return tracegraph.stop_gradient(x + x)


doubled.defvjp(lambda x: vjp(lambda y: 2 * y, x), lambda pullback, ct: pullback(ct))


@dataclass(frozen=True)
class Step:
    """A step of a program: for tracegraph, and for polynomials."""

    text: str
    traced: Function
    exact: Function


def _steps(number: float, times: int) -> dict[str, Step]:
    """Each maps a value to a polynomial of it."""

    def whole(x: Any) -> Any:
        c, n = while_loop(lambda c: c[1] < times, lambda c: (c[0] * number + 1, c[1] + 1), (x, 0))
        return c + n - times

    def bounded(x: Any) -> Any:
        return while_loop(
            lambda c: c[1] < times,
            lambda c: (c[0] * number + 1, c[1] + 1),
            (x, 0),
            max_steps=7,
        )[0]

    def affine(x: Any) -> Any:
        for _ in range(times):
            x = x * number + 1
        return x

    def scanned(x: Any) -> Any:
        last, ys = scan(lambda c, t: (c * t, c + x), x, np.full(times, number))
        return last + ys.sum()

    def scanned_exactly(x: Any) -> Any:
        c, total = x, 0 * x
        for _ in range(times):
            total, c = total + c + x, c * number
        return c + total

    return {
        "scaled": Step(f"* {number}", lambda x: x * number, lambda x: x * number),
        "shifted": Step(f"+ {number}", lambda x: number + x, lambda x: x + number),
        "square": Step("** 2", lambda x: x**2, lambda x: x**2),
        "product": Step("* itself", lambda x: x * x, lambda x: x * x),
        "cubed": Step("cubed, by a rule", cubed, lambda x: x**3),
        "squared": Step("squared, by a rule", squared, lambda x: x**2),
        "doubled": Step("doubled, by a rule", doubled, lambda x: 2 * x),
        "checkpoint": Step("checkpoint", checkpoint(lambda x: x * x + x), lambda x: x * x + x),
        "fori_loop": Step(
            f"fori_loop {times}",
            lambda x: fori_loop(0, times, lambda i, c: c * number + 1, x),
            affine,
        ),
        "while_loop": Step(f"while_loop {times}", bounded, affine),
        "scan": Step(f"scan {times}", scanned, scanned_exactly),
        "cond": Step(
            "cond",
            lambda x: cond(x * 0 + number > 0, lambda x: x * x, lambda x: 2 * x, x),
            lambda x: x * x if number > 0 else 2 * x,
        ),
        "lanes": Step(
            "lanes",
            lambda x: vmap(lambda n: n * x * x)(np.array([1.0, number])).sum(),
            lambda x: x * x * (1 + number),
        ),
        "inner gradient": Step("inner gradient", grad(lambda x: x * x * x), lambda x: 3 * x * x),
        "inner tangent": Step(
            "inner tangent",
            lambda x: jvp(lambda y: y * y * x, (x,), (1.0,))[1],
            lambda x: 2 * x * x,
        ),
        "inner pullback": Step(
            "inner pullback", lambda x: vjp(lambda y: y * y, x)[1](x)[0], lambda x: 2 * x * x
        ),
        "unbounded": Step(f"unbounded while_loop {times}", whole, affine),
    }


UNBOUNDED = "unbounded"
NUMBERS = (0.5, -1.0, 2.0, 3)


@st.composite
def programs(draw: st.DrawFn, unbounded: bool) -> tuple[str, Function, Function]:
    """The text of a program, the program, and the same for polynomials."""
    steps = []
    for _ in range(draw(st.integers(1, 4))):
        known = _steps(draw(st.sampled_from(NUMBERS)), draw(st.integers(0, 3)))
        names = [name for name in known if unbounded or name != UNBOUNDED]
        steps.append(known[draw(st.sampled_from(names))])

    def traced(x: Any) -> Any:
        for step in steps:
            x = step.traced(x)
        return x

    def exact(x: Any) -> Any:
        for step in steps:
            x = step.exact(x)
        return x

    return ", ".join(step.text for step in steps), traced, exact


def forwards(function: Function) -> Function:
    return lambda x: jvp(function, (x,), (1.0,))[1]


def linear(function: Function) -> Function:
    return lambda x: linearize(function, x)[1](1.0)


def pulled(function: Function) -> Function:
    return lambda x: vjp(function, x)[1](1.0)[0]


FORWARDS = (forwards, linear, jacfwd)
MODES = (*FORWARDS, grad, pulled, jacrev)


def check(drawn: tuple[str, Function, Function], modes: Any, x: float) -> None:
    _, traced, exact = drawn
    polynomial = exact(Polynomial([0.0, 1.0]))
    if polynomial.degree() > 40:
        return
    wanted = polynomial.deriv(len(modes))(x)
    scale = sum(abs(c) * abs(x) ** i for i, c in enumerate(polynomial.deriv(len(modes)).coef))
    for mode in modes:
        traced = mode(traced)
    near = {"rtol": 1e-9, "atol": 1e-9 * (1 + scale)}
    np.testing.assert_allclose(traced(x), wanted, **near)
    np.testing.assert_allclose(np.asarray(jit(traced, device="host")(x)), wanted, **near)
    np.testing.assert_allclose(vmap(traced)(np.array([x, x])), [wanted] * 2, **near)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@given(data=st.data())
@settings(max_examples=12)
def test_derivatives_of_random_polynomials(order: int, data: Any) -> None:
    modes = [data.draw(st.sampled_from(MODES)) for _ in range(order)]
    check(data.draw(programs(unbounded=False)), modes, data.draw(st.sampled_from([0.5, -0.75])))


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@given(data=st.data())
@settings(max_examples=12)
def test_derivatives_forwards_through_loops_of_unknown_length(order: int, data: Any) -> None:
    modes = [data.draw(st.sampled_from(FORWARDS)) for _ in range(order)]
    check(data.draw(programs(unbounded=True)), modes, data.draw(st.sampled_from([0.5, -0.75])))


def test_each_step_by_each_mode() -> None:
    """With each mode outside and inside; another step has other pairs of modes."""
    for turn, (name, step) in enumerate(_steps(2.0, 2).items()):
        modes = FORWARDS if name == UNBOUNDED else MODES
        for number, outer in enumerate(modes):
            inner = modes[(number + turn) % len(modes)]
            check((name, step.traced, step.exact), (outer, inner), 0.5)
