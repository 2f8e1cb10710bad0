"""Rules of functions of trees with None, integers, strings and numbers among their arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph import (
    checkpoint,
    cond,
    custom_jvp,
    custom_vjp,
    fori_loop,
    grad,
    jit,
    jvp,
    linearize,
    scan,
    switch,
    tree,
    value_and_grad,
    vjp,
    vmap,
    while_loop,
)

Function = Callable[..., Any]


@tracegraph.register_dataclass
@dataclass(frozen=True)
class Layer:
    w: Any
    count: Any
    how: str = field(default="tanh", metadata={"static": True})


def plain(p: Any, n: Any, how: Any = "times", extra: Any = None) -> Any:
    """A function of all kinds of arguments."""
    y = p["a"] * p["b"][0] * n + p["layer"].w * p["layer"].count
    if how == "squared":
        y = y * y
    if extra is not None:
        y = y + extra["shift"]
    return {"y": y, "n": n, "none": None}


def outer(p: Any, n: Any, how: Any, extra: Any) -> Any:
    """The factor of the derivatives of `plain` by the chain rule."""
    if how != "squared":
        return 1.0
    return 2 * (p["a"] * p["b"][0] * n + p["layer"].w * p["layer"].count)


@custom_vjp
def by_vjp(p: Any, n: Any, how: Any = "times", extra: Any = None) -> Any:
    return plain(p, n, how, extra)


def like(ct: Any, x: Any) -> Any:
    """The cotangent of a scalar that was broadcast is a sum."""
    return np.sum(ct) if np.ndim(x) == 0 else ct * np.ones_like(x)


def backward(kept: Any, ct: Any) -> Any:
    p, n, how, extra = kept
    assert ct["none"] is ct["n"] is None
    c = ct["y"] * outer(p, n, how, None)
    found = {
        "a": like(c * p["b"][0] * n, p["a"]),
        "b": [like(c * p["a"] * n, p["b"][0]), None],
        "layer": Layer(like(c * p["layer"].count, p["layer"].w), None),
        "none": None,
    }
    shift = None if extra is None else {"shift": like(ct["y"], extra["shift"])}
    return found, None, None, shift


by_vjp.defvjp(lambda p, n, how, extra: (plain(p, n, how, extra), (p, n, how, extra)), backward)


@custom_jvp
def by_jvp(p: Any, n: Any, how: Any = "times", extra: Any = None) -> Any:
    return plain(p, n, how, extra)


@by_jvp.defjvp
def rule(primals: Any, tangents: Any) -> Any:
    (p, n, how, extra), (t, t_n, t_how, t_extra) = primals, tangents
    assert t_n is t_how is t["b"][1] is t["layer"].count is t["none"] is None
    inner = t["a"] * p["b"][0] * n + p["a"] * t["b"][0] * n + t["layer"].w * p["layer"].count
    found = inner * outer(p, n, how, None)
    if extra is not None:
        found = found + t_extra["shift"]
    return plain(p, n, how, extra), {"y": found, "n": None, "none": None}


RULES = {"custom_vjp": by_vjp, "custom_jvp": by_jvp}

PARAMS = {
    "python": {"a": 2.0, "b": [3.0, 7], "layer": Layer(0.5, 3), "none": None},
    "numpy": {
        "a": np.float64(2),
        "b": [np.array([3.0, 1.0]), np.int64(7)],
        "layer": Layer(np.array([0.5, 0.25]), np.int32(3)),
        "none": None,
    },
    "float32": {
        "a": np.float32(2),
        "b": [np.array([3.0, 1.0], np.float32), True],
        "layer": Layer(0.5, 3),
        "none": None,
    },
}

CALLS: dict[str, Function] = {
    "plain": lambda f, p, n: f(p, n)["y"],
    "static": lambda f, p, n: f(p, n, "squared")["y"],
    "keyword": lambda f, p, n: f(p, n=n, how="squared", extra={"shift": p["a"]})["y"],
    "lambda": lambda f, p, n: (lambda p: f(p, n, "squared"))(p)["y"] * 2,
    "scan": lambda f, p, n: scan(
        lambda c, i: (c + f({**p, "a": c}, i)["y"].sum(), f(p, n)["y"]),
        p["a"] * 1.0,
        np.arange(3, dtype=np.int16),
    )[0],
    "fori_loop": lambda f, p, n: fori_loop(
        0, 3, lambda i, c: f({**p, "a": c}, i, "squared")["y"].sum() * 0.01, p["a"] * 1.0
    ),
    "while_loop": lambda f, p, n: while_loop(
        lambda c: c[1] < 3,
        lambda c: (c[0] + f({**p, "a": c[0]}, c[1])["y"].sum() * 0.1, c[1] + 1),
        (p["a"] * 1.0, 0),
        max_steps=5,
    )[0],
    "cond": lambda f, p, n: cond(
        p["a"] > 1, lambda p: f(p, n)["y"], lambda p: f(p, n, "squared")["y"], p
    ),
    "switch": lambda f, p, n: switch(n, [lambda p: f(p, 1)["y"], lambda p: f(p, n)["y"]], p),
    "checkpoint": lambda f, p, n: checkpoint(lambda p, n: f(p, n, "squared")["y"])(p, n),
    "lanes": lambda f, p, n: vmap(lambda s, i: f({**p, "a": p["a"] * s}, i)["y"])(
        np.array([1, 2], np.float32), np.array([3, 4], np.int16)
    ),
}


def differentiable(p: Any) -> tuple[Any, Function]:
    """The floats of a tree of parameters, and the function that puts others in their place."""
    leaves, structure = tree.flatten(p)
    places = [i for i, leaf in enumerate(leaves) if np.asarray(leaf).dtype.kind == "f"]

    def rebuilt(values: Any) -> Any:
        every = list(leaves)
        for i, value in zip(places, values, strict=True):
            every[i] = value
        return tree.unflatten(structure, every)

    return [leaves[i] for i in places], rebuilt


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("params", PARAMS)
@pytest.mark.parametrize("kind", RULES)
def test_all_mixtures_of_arguments(kind: str, params: str, name: str) -> None:
    p, call, function, n = PARAMS[params], CALLS[name], RULES[kind], 4
    values, rebuilt = differentiable(p)

    def loss(function: Function, p: Any, n: Any) -> Any:
        return (call(function, p, n) * np.array([1.0, 0.5])).sum()

    def of_values(function: Function) -> Function:
        return lambda values, n: loss(function, rebuilt(values), n)

    wanted = grad(of_values(plain))(values, n)
    rtol = 1e-4 if params == "float32" else 1e-12
    runs: list[Function] = [
        grad(of_values(function)),
        jit(grad(of_values(function)), device="host"),
        lambda values, n: vjp(of_values(function), values, n)[1](1.0)[0],
        lambda values, n: value_and_grad(of_values(function))(values, n=n)[1],
    ]
    for number, run in enumerate(runs):
        for given in (n, np.int16(n))[: 1 + (number < 2)]:
            for one, other in zip(run(values, given), wanted, strict=True):
                np.testing.assert_allclose(np.asarray(one), other, rtol=rtol)
    whole = grad(lambda p: loss(function, p, n), allow_int=True)(p)
    assert tree.structure(whole) == tree.structure(
        tree.map(lambda x: x if np.asarray(x).dtype.kind == "f" else None, p)
    )
    directions = [np.ones_like(v) for v in values]
    tangent = jvp(of_values(plain), (values, n), (directions, None))[1]
    for run in (
        lambda v, n: jvp(of_values(function), (v, n), (directions, None))[1],
        lambda v, n: linearize(of_values(function), v, n)[1](directions, None),
        jit(lambda v, n: jvp(of_values(function), (v, n), (directions, None))[1], device="host"),
    ):
        np.testing.assert_allclose(np.asarray(run(values, n)), tangent, rtol=rtol)
    second = [
        jvp(grad(of_values(f)), (values, n), (directions, None))[1] for f in (function, plain)
    ]
    for one, other in zip(*second, strict=True):
        np.testing.assert_allclose(one, other, rtol=10 * rtol, atol=1e-12)


@pytest.mark.parametrize("kind", [custom_jvp, custom_vjp, checkpoint])
def test_arguments_by_keyword_alone(kind: Any) -> None:
    function = kind(
        lambda x, *rest, y=2.0, **others: x * y * (1 + len(rest)) + sum(others.values())
    )
    if kind is custom_jvp:
        function.defjvp(lambda p, t: (function(p[0], y=p[-1]), 100.0 * t[0] + 10.0 * t[-1]))
    elif kind is custom_vjp:
        function.defvjp(
            lambda x, y: (function(x, y=y), None), lambda _, ct: (100.0 * ct, 10.0 * ct)
        )
    for run in (lambda f: f, lambda f: jit(f, device="host")):
        assert run(lambda x: function(x))(3.0) == 6
        assert run(lambda x: function(x, y=5.0))(3.0) == 15
        assert run(lambda x: function(x, 1, 2, y=5.0))(3.0) == 45
        assert run(lambda x: function(x, y=5.0, z=x))(3.0) == 18
        slopes = run(grad(lambda x, y: function(x, y=y), (0, 1)))(3.0, 5.0)
        assert [float(s) for s in slopes] == ([5, 3] if kind is checkpoint else [100, 10])


@pytest.mark.parametrize("kind", [custom_jvp, custom_vjp])
def test_rules_take_defaults(kind: Any) -> None:
    def power(x: Any, n: int = 2, scale: Any = 1.0) -> Any:
        return scale * x**n

    function = kind(power)
    if kind is custom_jvp:
        function.defjvp(lambda p, t: (power(*p), 10 * p[1] * p[0] * t[0]))
    else:
        function.defvjp(
            lambda x, n, scale: (power(x, n, scale), (x, n)),
            lambda kept, ct: (10 * kept[1] * kept[0] * ct, None, None),
        )
    assert grad(function)(3.0) == 60
    assert grad(function)(3.0, 3) == 90
    assert grad(lambda x: function(x, scale=4.0))(3.0) == 60
    assert grad(lambda x: function(n=3, x=x))(3.0) == 90
    for wrap in (jit, checkpoint):
        wrapped = kind(wrap(power))
        wrapped._set_rules(*function._given_rules())
        assert grad(wrapped)(3.0) == 60
        assert grad(lambda x: wrapped(x, n=3))(3.0) == 90  # noqa: B023
    lanes = kind(vmap(lambda x, n=2: x * n))
    assert jit(lambda x: lanes(x), device="host")(np.ones(3)).shape == (3,)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        jit(lambda x: function(n=3), device="host")(3.0)


def test_an_integer_of_python_is_checked_at_the_call() -> None:
    """Its range is that of the dtype it meets in the function, not in a rule."""

    @custom_vjp
    def scaled(x: Any, n: Any) -> Any:
        return x * (np.int8(1) * n)

    scaled.defvjp(lambda x, n: (scaled(x, n), n), lambda n, ct: (ct * n, None))
    compiled = jit(grad(scaled), device="host")
    assert np.asarray(compiled(2.0, 100)) == 100
    with pytest.raises((OverflowError, TypeError, ValueError)):
        compiled(2.0, 1000)
