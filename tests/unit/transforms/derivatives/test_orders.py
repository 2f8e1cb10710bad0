"""Rules hold at every order: of orders 1 to 5, forwards and backwards in any mixture."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph import (
    checkpoint,
    custom_jvp,
    custom_linear_solve,
    custom_root,
    custom_vjp,
    errors,
    fori_loop,
    grad,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vmap,
    while_loop,
)

Function = Callable[..., Any]


@custom_jvp
def stepped(x: Any) -> Any:
    """Its equations have the derivative 0; the rule says that it is its own derivative."""
    return np.round(np.exp(x) * 1e9) / 1e9


@stepped.defjvp
def stepped_rule(primals: Any, tangents: Any) -> Any:
    y = stepped(*primals)
    return y, y * tangents[0]


@custom_vjp
def stepped_back(x: Any) -> Any:
    return np.round(np.exp(x) * 1e9) / 1e9


stepped_back.defvjp(lambda x: (stepped_back(x), x), lambda x, ct: (stepped_back(x) * ct,))


@custom_jvp
def by_newton(a: Any) -> Any:
    """A square root by a loop of unknown length, which has no reverse mode."""
    return while_loop(lambda x: abs(x * x - a) > 1e-14 * a, lambda x: (x + a / x) / 2, a)


@by_newton.defjvp
def by_newton_rule(primals: Any, tangents: Any) -> Any:
    y = by_newton(*primals)
    return y, tangents[0] / (2 * y)


@custom_vjp
def newton_back(a: Any) -> Any:
    return while_loop(lambda x: abs(x * x - a) > 1e-14 * a, lambda x: (x + a / x) / 2, a)


newton_back.defvjp(lambda a: (newton_back(a), a), lambda a, ct: (ct / (2 * newton_back(a)),))


@custom_jvp
def even(x: Any) -> Any:
    """With `odd`, rules that call each other: cosine and sine."""
    return np.round(np.cos(x) * 1e9) / 1e9


@custom_jvp
def odd(x: Any) -> Any:
    return np.round(np.sin(x) * 1e9) / 1e9


even.defjvp(lambda p, t: (even(*p), -odd(*p) * t[0]))
odd.defjvp(lambda p, t: (odd(*p), even(*p) * t[0]))


def root(a: Any) -> Any:
    def newton(f: Function, x: Any) -> Any:
        return while_loop(
            lambda x: abs(f(x)) > 1e-14, lambda x: x - f(x) / jvp(f, (x,), (1.0,))[1], x
        )

    return custom_root(lambda x: x * x - a, 1.5, newton, lambda g, y: y / g(1.0))


def solved(*transposed: Function, symmetric: bool = False) -> Function:
    def solve(matvec: Function, b: Any) -> Any:
        return b / matvec(1.0)

    def function(a: Any) -> Any:
        return custom_linear_solve(
            lambda x: a * x, 1.0 + a * 0, solve, *transposed and (solve,), symmetric=symmetric
        )

    return function


def of_root(order: int) -> float:
    return math.prod(0.5 - i for i in range(order)) * 2.0 ** (0.5 - order)


def of_inverse(order: int) -> float:
    return (-1) ** order * math.factorial(order) * 2.0 ** (-1 - order)


def of_exp(order: int) -> float:
    return math.exp(2.0)


def of_cos(order: int) -> float:
    return math.cos(2.0 + order * math.pi / 2)


CASES: dict[str, tuple[Function, Callable[[int], float]]] = {
    "custom_jvp": (stepped, of_exp),
    "custom_vjp": (stepped_back, of_exp),
    "each other": (even, of_cos),
    "loop, custom_jvp": (by_newton, of_root),
    "loop, custom_vjp": (newton_back, of_root),
    "checkpoint": (checkpoint(stepped), of_exp),
    "branch": (lambda x: tracegraph.cond(x > 0, stepped, lambda x: x, x), of_exp),
    "counted loop": (lambda x: fori_loop(0, 1, lambda i, c: stepped(c), x), of_exp),
    "one lane": (lambda x: vmap(stepped_back)(x * np.ones(1))[0], of_exp),
    "custom_root": (root, of_root),
    "linear solve": (solved(), of_inverse),
    "linear solve, transposed": (solved(np.sin), of_inverse),
    "linear solve, symmetric": (solved(symmetric=True), of_inverse),
}


def forwards(function: Function) -> Function:
    return lambda x: jvp(function, (x,), (1.0,))[1]


def by_linearize(function: Function) -> Function:
    return lambda x: linearize(function, x)[1](1.0)


def derivative(function: Function, modes: Any) -> Function:
    for mode in modes:
        function = mode(function)
    return function


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("order", [1, 2, 3])
def test_rules_in_all_mixtures_of_modes(name: str, order: int) -> None:
    function, wanted = CASES[name]
    for modes in itertools.product((grad, forwards), repeat=order):
        found = derivative(function, modes)(2.0)
        np.testing.assert_allclose(found, wanted(order), rtol=1e-7, err_msg=str(modes))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("modes", [(grad,) * 5, (forwards,) * 5, (grad, forwards, grad, forwards)])
def test_rules_at_orders_4_and_5(name: str, modes: Any) -> None:
    function, wanted = CASES[name]
    np.testing.assert_allclose(derivative(function, modes)(2.0), wanted(len(modes)), rtol=1e-7)


@pytest.mark.parametrize("mode", [by_linearize, jacfwd, jacrev])
@pytest.mark.parametrize("name", CASES)
def test_rules_at_order_4_by_other_transforms(name: str, mode: Any) -> None:
    function, wanted = CASES[name]
    found = tracegraph.jit(derivative(function, (mode,) * 4), device="host")(2.0)
    np.testing.assert_allclose(np.asarray(found), wanted(4), rtol=1e-7)


def test_rules_in_lanes_and_loops_at_order_3() -> None:
    points = np.array([0.5, 1.0, 2.0])
    third = derivative(stepped, (grad,) * 3)
    np.testing.assert_allclose(vmap(third)(points), np.exp(points), rtol=1e-7)
    outside = derivative(lambda x: vmap(stepped)(x * points).sum(), (grad,) * 3)
    np.testing.assert_allclose(outside(0.7), (points**3 * np.exp(0.7 * points)).sum(), rtol=1e-7)

    def nested(f: Function, x: Any) -> Any:
        return tracegraph.scan(lambda c, _: (f(c) * 0.1, c), x, length=3)[0]

    found = derivative(lambda x: nested(stepped, x), (grad, grad, forwards))(0.3)
    plain = derivative(lambda x: nested(np.exp, x), (grad, grad, forwards))(0.3)
    np.testing.assert_allclose(found, plain, rtol=1e-7)


def test_a_linear_function_may_be_called_on_tangents_by_its_own_rule() -> None:
    @custom_jvp
    def doubled(x: Any) -> Any:
        return x * 2

    doubled.defjvp(lambda p, t: (doubled(*p), doubled(*t)))
    for modes in itertools.product((grad, forwards), repeat=2):
        assert derivative(lambda x: doubled(x) ** 2, modes)(3.0) == 8
    assert grad(doubled)(3.0) == 2


def test_a_rule_is_traced_as_often_as_derivatives_need_it() -> None:
    calls = []

    @custom_jvp
    def function(x: Any) -> Any:
        return x * x

    @function.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        calls.append(1)
        return function(*primals), 2 * primals[0] * tangents[0]

    for order in range(5):
        calls.clear()
        derivative(function, (forwards,) * order)(2.0)
        assert len(calls) == order


def unused_rules() -> dict[str, Callable[[Function], Any]]:
    """Calls of a function that ask for no derivative of it."""
    return {
        "plain": lambda f: f(2.0),
        "jit": lambda f: np.asarray(tracegraph.jit(f, device="host")(2.0)),
        "vmap": lambda f: vmap(f)(np.array([2.0]))[0],
        "loop": lambda f: np.asarray(
            tracegraph.jit(lambda x: fori_loop(0, 1, lambda i, c: f(c), x), device="host")(2.0)
        ),
    }


def faulty(kind: str, where: str) -> Function:
    """A function whose rule raises an error, or returns something else."""

    def broken(*args: Any) -> Any:
        raise ZeroDivisionError("the rule is broken")

    if kind == "custom_jvp":
        by_rule = custom_jvp(lambda x: x * x)
        by_rule.defjvp(broken)
        return by_rule
    pulled = custom_vjp(lambda x: x * x)
    forward = broken if where == "forward" else lambda x: (x * x, x)
    pulled.defvjp(forward, broken)
    return pulled


FAULTS = [("custom_jvp", ""), ("custom_vjp", "forward"), ("custom_vjp", "backward")]


@pytest.mark.parametrize(("kind", "where"), FAULTS)
@pytest.mark.parametrize("call", unused_rules())
def test_a_faulty_rule_breaks_no_call_without_derivatives(kind: str, where: str, call: str) -> None:
    assert unused_rules()[call](faulty(kind, where)) == 4.0


@pytest.mark.parametrize(("kind", "where"), FAULTS)
def test_a_faulty_rule_breaks_the_derivatives_that_need_it(kind: str, where: str) -> None:
    function = faulty(kind, where)
    assert grad(lambda x, y: function(y) * x)(3.0, 2.0) == 4.0
    assert grad(lambda x: function(tracegraph.stop_gradient(x)) * x)(2.0) == 4.0
    for mode in (grad, forwards, jacfwd, jacrev):
        with pytest.raises(ZeroDivisionError, match="the rule is broken"):
            mode(function)(2.0)
        with pytest.raises(ZeroDivisionError, match="the rule is broken"):
            mode(lambda x: vmap(function)(x * np.ones(2)).sum())(2.0)


def test_a_faulty_solve_breaks_the_derivatives_that_need_it() -> None:
    def broken(*args: Any) -> Any:
        raise ZeroDivisionError("the rule is broken")

    def rooted(a: Any) -> Any:
        return custom_root(lambda x: x - a * a, 4.0, lambda f, x: x, broken)

    def inverted(a: Any, transpose_solve: Any = broken) -> Any:
        return custom_linear_solve(lambda x: x, a * a, lambda matvec, b: b * 1.0, transpose_solve)

    for function in (rooted, inverted):
        assert grad(lambda x, y, f=function: f(y) * x)(3.0, 2.0) == 4.0
        with pytest.raises(ZeroDivisionError, match="the rule is broken"):
            grad(function)(2.0)
        with pytest.raises(ZeroDivisionError, match="the rule is broken"):
            grad(lambda x, f=function: vmap(f)(x * np.ones(2)).sum())(2.0)
    assert jvp(inverted, (2.0,), (1.0,)) == (4.0, 4.0)
    with pytest.raises(ZeroDivisionError, match="the rule is broken"):
        jvp(rooted, (2.0,), (1.0,))
    with pytest.raises(errors.CustomRuleError, match=r"transpose_solve, which is .* must return"):
        grad(lambda a: inverted(a, lambda matvec, b: (b, b)))(2.0)


def test_a_backward_rule_that_is_not_used_breaks_nothing() -> None:
    function = faulty("custom_vjp", "backward")
    value, pullback = tracegraph.vjp(function, 2.0)
    assert value == 4.0
    with pytest.raises(ZeroDivisionError, match="the rule is broken"):
        pullback(1.0)


def untraced(kind: str) -> Function:
    """A function whose rules must not be traced."""

    def rule(*args: Any) -> Any:
        raise AssertionError("a rule was traced")

    if kind == "custom_vjp":
        pulled = custom_vjp(lambda x: x * x)
        pulled.defvjp(rule, rule)
        return pulled
    pushed = custom_jvp(lambda x: x * x)
    pushed.defjvp(rule)
    return pushed


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
@pytest.mark.parametrize("run", [lambda f: f, lambda f: tracegraph.jit(f, device="host")])
def test_rules_are_not_traced_for_arguments_that_are_not_differentiated(
    kind: str, run: Any
) -> None:
    function = untraced(kind)
    assert run(grad(lambda x, y: function(y) * x))(3.0, 2.0) == 4.0
    assert run(lambda x, y: jvp(lambda x: function(y) * x, (x,), (1.0,))[1])(3.0, 2.0) == 4.0
    assert run(grad(lambda x, y: grad(lambda z: function(y) * z * x)(y)))(3.0, 2.0) == 4.0
    with pytest.raises(AssertionError, match="a rule was traced"):
        run(grad(lambda x, y: grad(lambda z: function(x) * z)(y)))(3.0, 2.0)


@pytest.mark.parametrize("call", unused_rules())
def test_rules_are_not_traced_without_derivatives(call: str) -> None:
    def rule(*args: Any) -> Any:
        raise AssertionError("a rule was traced")

    pulled = custom_vjp(lambda x: x * x)
    pulled.defvjp(rule, rule)
    assert unused_rules()[call](pulled) == 4.0

    def rooted(a: Any) -> Any:
        return custom_root(lambda x: x - a * a, 4.0, lambda f, x: x, rule)

    def inverted(a: Any) -> Any:
        return custom_linear_solve(lambda x: x, a * a, lambda matvec, b: b, rule)

    assert unused_rules()[call](rooted) == unused_rules()[call](inverted) == 4.0


def test_a_function_without_rules_has_no_derivative() -> None:
    for kind, setter in ((custom_jvp, "defjvp"), (custom_vjp, "defvjp")):
        function = kind(lambda x: x * 2)
        assert tracegraph.jit(function, device="host")(1.0) == 2
        with pytest.raises(errors.CustomRuleError, match=f"has no rule: set it by {setter}"):
            grad(function)(1.0)
