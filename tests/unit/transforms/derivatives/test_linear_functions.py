"""Pullbacks and linear functions are trees; tangents and cotangents are checked."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.comparisons.linear_functions import LINEAR_PROGRAMS
from tests.comparisons.linear_functions import X as POINTS
from tracegraph import (
    cond,
    custom_jvp,
    custom_vjp,
    errors,
    grad,
    jit,
    jvp,
    linear_transpose,
    linearize,
    scan,
    tree,
    vjp,
    vmap,
)
from tracegraph.testing import assert_traced_equals_eager

P = {"a": np.array([0.1, 0.2])}
X = np.array([1.0, 2.0])


def model(p: Any, x: Any) -> Any:
    return np.sin(p["a"] * x).sum(), x * 2


def assert_same(found: Any, wanted: Any) -> None:
    assert tree.structure(found) == tree.structure(wanted)
    for one, other in zip(tree.leaves(found), tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-14)


def test_pullbacks_and_linear_functions_pass_in_and_out_of_jitted_functions() -> None:
    y, pullback = vjp(model, P, X)
    wanted = pullback((1.0, X))
    made = jit(lambda p, x: vjp(model, p, x), device="host")
    out, returned = made(P, X)
    assert_same(out, y)
    assert_same(returned((1.0, X)), wanted)
    used = jit(lambda pullback, ct: pullback(ct), device="host")
    for each in (pullback, returned, made(P, 1 * X)[1], vjp(model, P, 1 * X)[1]):
        assert_same(used(each, (1.0, X)), wanted)
    assert used.stats()["traces"] == 1
    derivative = jit(lambda p, x: linearize(model, p, x)[1], device="host")(P, X)
    assert_same(derivative(P, X), jvp(model, (P, X), (P, X))[1])
    pushed = jit(lambda derivative, t: derivative(P, t), device="host")
    assert_same(pushed(derivative, X), derivative(P, X))


def test_pullbacks_are_trees() -> None:
    pullback = vjp(np.sin, 0.5)[1]
    assert tree.leaves(pullback) == [np.cos(0.5)]
    assert tree.map(lambda x: 2 * x, pullback)(1.0) == (2 * np.cos(0.5),)
    assert tree.structure(pullback) == tree.structure(vjp(np.sin, 0.7)[1])
    assert tree.structure(pullback) != tree.structure(vjp(np.cos, 0.7)[1])
    assert tree.structure(pullback) != tree.structure(vjp(np.sin, np.float32(0.7))[1])
    assert repr(pullback) == "<pullback of sin>"
    assert repr(linearize(np.sin, 0.5)[1]) == "<derivative of sin>"
    for copied in (copy.copy(pullback), copy.deepcopy(pullback)):
        assert copied(1.0) == pullback(1.0)


def test_pullbacks_in_loops_branches_and_lanes() -> None:
    def last(x: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            y, pullback = carry
            return vjp(np.sin, y), pullback(1.0)[0]

        return scan(step, vjp(np.sin, x), length=3)[1]

    points = [0.5, np.sin(0.5), np.sin(np.sin(0.5))]
    for run in (last, jit(last, device="host")):
        np.testing.assert_allclose(np.asarray(run(0.5)), np.cos(points), rtol=1e-14)

    def chosen(flag: Any, x: Any) -> Any:
        return cond(flag, lambda x: vjp(np.sin, x)[1], lambda x: vjp(np.sin, 2 * x)[1], x)

    for flag, point in ((True, 0.5), (False, 1.0)):
        (found,) = jit(chosen, device="host")(flag, 0.5)(1.0)
        np.testing.assert_allclose(np.asarray(found), np.cos(point))
    pullbacks = vmap(lambda x: vjp(np.sin, x)[1])(X)
    (found,) = vmap(lambda pullback, ct: pullback(ct))(pullbacks, 2 * X)
    np.testing.assert_allclose(found, 2 * X * np.cos(X))


@pytest.mark.parametrize("run", [lambda f: f, lambda f: jit(f, device="host")], ids=["", "jit"])
def test_a_pullback_may_be_the_residual_of_a_custom_vjp(run: Any) -> None:
    def inner(x: Any, y: Any) -> Any:
        return np.sin(x) * x * y

    function = custom_vjp(inner)
    function.defvjp(
        lambda x, y: vjp(inner, x, y),
        lambda pullback, ct: tuple([3 * found for found in pullback(ct)]),
    )
    found = run(grad(lambda x: function(x, 2.0).sum()))(X)
    np.testing.assert_allclose(np.asarray(found), 6 * (np.sin(X) + X * np.cos(X)))
    by_loop = run(grad(lambda x: scan(lambda c, _: (function(c, 0.1), None), x, length=2)[0]))
    first = 0.1 * np.sin(0.7) * 0.7
    wanted = 0.09 * (np.sin(0.7) + 0.7 * np.cos(0.7)) * (np.sin(first) + first * np.cos(first))
    np.testing.assert_allclose(np.asarray(by_loop(0.7)), wanted)
    lanes = run(vmap(grad(lambda x: function(x, 2.0))))(X)
    np.testing.assert_allclose(np.asarray(lanes), 6 * (np.sin(X) + X * np.cos(X)))
    second = run(grad(grad(lambda x: function(x, 1.0))))(0.7)
    np.testing.assert_allclose(np.asarray(second), 3 * (2 * np.cos(0.7) - 0.7 * np.sin(0.7)))


def test_a_linear_function_may_be_a_residual() -> None:
    function = custom_vjp(np.sin)
    function.defvjp(lambda x: linearize(np.sin, x), lambda derivative, ct: (derivative(ct),))
    assert grad(function)(0.5) == np.cos(0.5)
    assert grad(grad(function))(0.5) == -np.sin(0.5)


def test_gradients_by_the_residuals_of_a_pullback() -> None:
    pullback = vjp(lambda x: x**3, 2.0)[1]
    found = grad(lambda pullback: pullback(5.0)[0] ** 2)(pullback)
    assert tree.structure(found) == tree.structure(pullback)

    function = custom_jvp(lambda x: np.round(x))
    function.defjvp(lambda p, t: (function(*p), function(*p) * t[0]))
    kept = vjp(function, 3.0)[1]
    assert kept(1.0) == (3.0,)


# what tangents and cotangents must be


def scaled(x: Any, n: Any) -> Any:
    return x * n


@pytest.mark.parametrize(
    "zero", [None, 0, False, np.int64(0), np.zeros((), [("float0", "V")]), np.zeros(())]
)
def test_zeros_are_tangents_of_integers(zero: Any) -> None:
    assert jvp(scaled, (2.0, 3), (1.0, zero)) == (6.0, 3.0)
    assert linearize(scaled, 2.0, 3)[1](1.0, zero) == 3.0
    assert vjp(lambda x, n: (x * n, n), 2.0, 3)[1]((1.0, zero)) == (3.0, None)


def test_zeros_of_a_trace_are_tangents_of_integers() -> None:
    def function(x: Any, n: Any) -> Any:
        return jvp(scaled, (x, n), (1.0, np.zeros_like(n)))[1]

    assert np.asarray(jit(function, device="host")(2.0, 3)) == 3
    with pytest.raises(errors.TangentMismatchError, match="integers and bools have no tangent"):
        jit(lambda x, n: jvp(scaled, (x, n), (1.0, n))[1], device="host")(2.0, 3)


@pytest.mark.parametrize("wrong", [1, 2.5, True, np.ones(3), np.zeros(3), "0", np.zeros(3, int)])
def test_integers_have_no_other_tangents(wrong: Any) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: jvp(scaled, (2.0, 3), (1.0, wrong)),
        lambda: linearize(scaled, 2.0, 3)[1](1.0, wrong),
        lambda: vjp(lambda x, n: (x * n, n), 2.0, 3)[1]((1.0, wrong)),
    ]
    for call in calls:
        with pytest.raises(errors.TangentMismatchError, match="give None, or zeros"):
            call()


@pytest.mark.parametrize("wrong", [np.ones(2), 1j, "a", np.ones((1, 3)), [1.0]])
def test_linear_functions_check_shapes_and_dtypes(wrong: Any) -> None:
    _, derivative = linearize(scaled, np.ones(3), 2.0)
    with pytest.raises(errors.TransformError, match=r"of scaled \(test_linear_functions"):
        derivative(wrong, 1.0)
    with pytest.raises(errors.TransformError, match=r"of scaled \(test_linear_functions"):
        derivative(np.ones(3))
    with pytest.raises(errors.TransformError, match=r"of scaled \(test_linear_functions"):
        vjp(scaled, np.ones(3), 2.0)[1](wrong)


def test_errors_of_tangents_name_function_argument_and_types() -> None:
    def message(call: Callable[[], Any]) -> list[str]:
        with pytest.raises(errors.TransformError) as caught:
            call()
        return str(caught.value).splitlines()

    first, row, place = message(lambda: jvp(model, (P, X), ({"a": X[:1]}, X)))
    assert first.startswith(
        "jvp: the tangents must have the shapes and dtypes of the arguments of "
    )
    assert "model (test_linear_functions.py:" in first
    assert row.endswith("['a'] is f64[2], got an array of type f64[1] (argument p['a'])")
    assert "test_linear_functions.py:" in place
    first, place = message(lambda: vjp(model, P, X)[1](1.0))
    assert "must have the structure (*, *), as the result of model" in first
    first, place = message(lambda: vjp(model, P, X)[1](1.0, X))
    assert "takes one cotangent" in first
    assert "got 2 arguments: pass several as one tree" in first


@pytest.mark.parametrize("types", [(np.arange(3),), (1.0, 3), (True,), ({"a": 1.0, "b": 2},)])
def test_functions_of_integers_are_not_transposed(types: Any) -> None:
    with pytest.raises(errors.DifferentiatedTypeError, match=r"argument types\[.*is ~?(i64|bool)"):
        linear_transpose(lambda *args: args[0], *types)


# functions with rules as values


module_function = custom_jvp(np.sin)
module_function.__module__, module_function.__qualname__ = __name__, "module_function"
module_function.defjvp(lambda p, t: (module_function(*p), np.cos(p[0]) * t[0]))


def sine(x: Any) -> Any:
    return np.sin(x)


def sine_rule(primals: Any, tangents: Any) -> Any:
    return np.sin(primals[0]), 7 * tangents[0]


def test_functions_with_rules_are_copied_and_pickled_as_functions_are() -> None:
    for copied in (copy.copy(module_function), copy.deepcopy([module_function])[0]):
        assert copied is module_function
    assert pickle.loads(pickle.dumps(module_function)) is module_function
    anew = custom_jvp(sine)
    anew.defjvp(sine_rule)
    assert copy.deepcopy({"f": anew})["f"] is anew
    restored = pickle.loads(pickle.dumps(anew))
    assert grad(restored)(0.5) == 7
    pulled = custom_vjp(sine)
    assert pickle.loads(pickle.dumps(pulled))(0.5) == np.sin(0.5)


@pytest.mark.parametrize("program", LINEAR_PROGRAMS, ids=lambda f: f.__name__)
def test_programs_of_linear_functions_in_all_ways(program: Callable[..., Any]) -> None:
    assert_traced_equals_eager(program, POINTS, rtol=2e-6, atol=1e-7)
