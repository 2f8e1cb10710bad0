"""Misuse of derivatives: an error names the user's function, the argument, and what to write."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linear_transpose,
    linearize,
    value_and_grad,
    vjp,
    vmap,
)

X = np.array([0.1, 0.2, 0.3])
P = {"w": X}


def model(p: Any, x: Any) -> Any:
    return (p["w"] * x).sum()


def pair(x: Any) -> Any:
    return {"y": x * 2, "n": 3}


def weighted(p: Any, n: Any) -> Any:
    return p["w"] * n


def by_jvp(rule: Any) -> Callable[[], Any]:
    function = custom_jvp(pair)
    function.defjvp(rule)
    return lambda: grad(lambda x: function(x)["y"].sum())(X)


def by_vjp(forward: Any, backward: Any) -> Callable[[], Any]:
    function = custom_vjp(weighted)
    function.defvjp(forward, backward)
    return lambda: grad(lambda p: function(p, 2).sum())(P)


def kept(p: Any, n: Any) -> Any:
    return p["w"] * n, (p, n)


def solve_with(matvec: Any, solve: Any, *rest: Any) -> Callable[[], Any]:
    return lambda: grad(lambda b: custom_linear_solve(matvec, b, solve, *rest).sum())(X)


MISUSE: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "cotangent": (lambda: vjp(model, P, X)[1](X), ["result of model (test_misuse", "f64[3]"]),
    "cotangents": (lambda: vjp(model, P, X)[1](1.0, 2.0), ["pullback of model (test_misuse"]),
    "tangent": (
        lambda: jvp(model, (P, X), ({"w": X[:1]}, X)),
        ["arguments of model (test_misuse", "argument p['w']", "f64[1]"],
    ),
    "tangents": (lambda: linearize(model, P, X)[1](P), ["arguments of model (test_misuse"]),
    "axes": (lambda: vmap(model, ({"v": 0}, 0))(P, X), ["argument p of model (test_misuse"]),
    "an axis": (lambda: vmap(model, (1, 0))(P, X), ["p['w']", "1 axis", "of model (test_misuse"]),
    "a scalar": (lambda: vmap(model)(P, 2.0), ["x has", "no axis to map", "of model (test_misuse"]),
    "no int": (lambda: vmap(model, ("a", 0))(P, X), ["'a'", "argument p of model (test_misuse"]),
    "out_axes": (
        lambda: vmap(model, out_axes=2)(P, X),
        ["out_axes is 2", "model (test_misuse", "from -1 to 0"],
    ),
    "a string": (lambda: grad(model)("p", X), ["p: builtins.str", "let model (test_misuse"]),
    "a mapped string": (lambda: vmap(model)("p", X), ["p: builtins.str", "let model (test_misuse"]),
    "argnums by name": (
        lambda: grad(model, "x")(P, X),  # type: ignore[arg-type]
        ["argnums must be", "x of model (test_misuse", "position 1"],
    ),
    "an integer": (
        lambda: grad(model)({"w": 3}, X),
        ["p['w'] of model", "i64[];", "set allow_int"],
    ),
    "holomorphic": (
        lambda: grad(model, holomorphic=True)(P, X),
        ["p['w'] of model (test_misuse", "pass a complex number, or leave holomorphic out"],
    ),
    "aux": (lambda: hessian(model, has_aux=True)(P, X), ["hessian: with has_aux, model"]),
    "not linear": (
        lambda: linear_transpose(np.sin, X)(X),
        ["linear_transpose: sin is not linear in what depends on the arguments of sin"],
    ),
    "result of a rule": (
        by_jvp(lambda p, t: ({"y": p[0] * 2}, None)),
        ["the rule <lambda> (test_misuse", "of pair (test_misuse", "{'n': *, 'y': *}"],
    ),
    "tree of a rule": (
        by_jvp(lambda p, t: (pair(p[0]), (t[0],))),
        ["of pair (test_misuse", "a tangent of the structure {'n': *, 'y': *}", "got (*,)"],
    ),
    "tangent of a rule": (
        by_jvp(lambda p, t: (pair(p[0]), {"y": t[0].sum(), "n": None})),
        ["returned f64[] for a value of type f64[3] (the tangent of result['y'])"],
    ),
    "parameters of a rule": (
        by_jvp(lambda n, p, t: None),
        ["of pair (test_misuse", "(n, p, t), but is called as (primals, tangents)"],
    ),
    "cotangent of a rule": (
        by_vjp(kept, lambda r, ct: ({"w": ct.sum()}, None)),
        ["returned f64[] for a value of type f64[3] (the cotangent of argument p['w'])"],
    ),
    "tree of a backward rule": (
        by_vjp(kept, lambda r, ct: ((ct,), None)),
        ["the backward rule", "of weighted (test_misuse", "for the argument p, got (*,)"],
    ),
    "count of a backward rule": (
        by_vjp(kept, lambda r, ct: ({"w": ct},)),
        ["of weighted (test_misuse", "a tuple of 2 cotangents", "one of 1"],
    ),
    "parameters of a forward rule": (
        by_vjp(lambda p: kept(p, 2), lambda r, ct: ({"w": ct}, None)),
        ["the forward rule", "(p), but is called as (p, n)"],
    ),
    "parameters of a backward rule": (
        by_vjp(kept, lambda n, r, ct: ({"w": ct}, None)),
        ["the backward rule", "(n, r, ct), but is called as (residuals, cotangent)"],
    ),
    "solve": (
        solve_with(lambda x: x, lambda matvec, b: b[:1]),
        ["custom_linear_solve: solve, which is <lambda> (test_misuse", "f64[3], got * of f64[1]"],
    ),
    "matvec": (
        solve_with(lambda x: (x,), lambda matvec, b: b),
        ["custom_linear_solve: matvec, which is <lambda> (test_misuse", "got (*,) of f64[3]"],
    ),
    "nonlinear matvec": (
        solve_with(lambda x: x**2, lambda matvec, b: b, lambda matvec, b: b),
        ["square is not linear in what depends on the argument of matvec"],
    ),
    "tangent_solve": (
        lambda: grad(lambda a: custom_root(lambda x: x - a, a, lambda f, x: x, lambda g, y: (y,)))(
            1.0
        ),
        ["custom_root: tangent_solve, which is <lambda> (test_misuse", "got (*,)"],
    ),
}


@pytest.mark.parametrize("traced", [False, True], ids=["now", "traced"])
@pytest.mark.parametrize("name", MISUSE)
def test_misuse_names_the_function(name: str, traced: bool) -> None:
    call, facts = MISUSE[name]
    with pytest.raises((TypeError, ValueError)) as caught:
        tracegraph.make_program(lambda x: call())(1.0) if traced else call()
    message = str(caught.value)
    assert [fact for fact in facts if fact not in message] == [], message
    assert "\n  at test_misuse.py:" in message


def keywords() -> dict[str, tuple[Callable[[], Any], str]]:
    """Calls with keywords that another library has, and what the error says."""
    function = custom_vjp(weighted)
    calls: dict[str, tuple[Callable[[], Any], str]] = {
        f"{transform.__name__}, {keyword}": (
            partial(transform, model, **{keyword: 0}),
            advice,
        )
        for transform in (grad, value_and_grad, jacfwd, jacrev, hessian)
        for keyword, advice in (("argnum", "argnums"), ("argnames", "argnums=0"))
    }
    calls |= {
        "wrt": (lambda: grad(model, wrt="p"), "argnums=0"),
        "reduce_axes": (lambda: vjp(model, P, X, reduce_axes=()), "no named axes"),
        "spmd_axis_name": (lambda: vmap(model, spmd_axis_name="i"), "never devices"),
        "in_axis": (lambda: vmap(model, in_axis=0), "called in_axes"),
        "policy": (lambda: checkpoint(model, policy=None), "its arguments alone"),
        "static_argnums": (lambda: checkpoint(model, static_argnums=1), "passed on as they are"),
        "nondiff_argnums": (lambda: custom_jvp(model, nondiff_argnums=(1,)), "passed on"),
        "as a decorator": (
            lambda: partial(custom_vjp, nondiff_argnums=(1,))(model),
            "custom_vjp has no parameter nondiff_argnums",
        ),
        "symbolic_zeros": (lambda: function.defvjp(kept, kept, symbolic_zeros=True), "floats"),
        "fwd": (lambda: function.defvjp(fwd=kept, bwd=kept), "it is called forward"),
        "initial_guess": (lambda: custom_root(kept, initial_guess=1.0), "called x0"),
        "argnums of vjp": (lambda: vjp(model, P, X, argnums=0), "bind others by a lambda"),
    }
    return calls


@pytest.mark.parametrize("name", keywords())
def test_keywords_of_others_say_what_there_is(name: str) -> None:
    call, advice = keywords()[name]
    with pytest.raises(errors.KeywordError) as caught:
        call()
    assert "has no parameter" in str(caught.value)
    assert advice in str(caught.value)


def test_setters_of_others_say_what_there_is() -> None:
    with pytest.raises(
        AttributeError, match=r"custom_jvp has no attribute defjvps: one rule for al"
    ):
        custom_jvp(model).defjvps(None)
    with pytest.raises(
        AttributeError, match=r"custom_jvp has no attribute defvjp: of a custom_jvp"
    ):
        custom_jvp(model).defvjp(kept, kept)
    with pytest.raises(AttributeError, match=r"custom_vjp has no attribute defjvp: .*defvjp\(forw"):
        custom_vjp(model).defjvp(kept)
    with pytest.raises(AttributeError, match=r"custom_vjp has no attribute rules$"):
        _ = custom_vjp(model).rules
    assert not hasattr(custom_jvp(model), "rules")
