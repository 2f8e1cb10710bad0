"""jvp, vjp, grad and their relatives: arguments, results, conventions and errors."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.gradients import check_gradient, check_second
from tracegraph import (
    errors,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linear_transpose,
    linearize,
    stop_gradient,
    value_and_grad,
    vjp,
    vmap,
)
from tracegraph.arrays.eager import apply
from tracegraph.dtypes import bfloat16
from tracegraph.ir import op as registry
from tracegraph.ir.derivative import Partials
from tracegraph.ir.program import walk
from tracegraph.ops.elementwise import texts, ufunc_op

X = np.array([0.3, -0.8, 0.6])
A = np.random.default_rng(2).normal(size=(4, 3))


def cube(x: Any) -> Any:
    return x**3


# values


def test_each_derivative_of_a_cube() -> None:
    found = [cube]
    for expected in (12.0, 12.0, 6.0, 0.0):
        found.append(grad(found[-1]))
        assert found[-1](2.0) == expected


@pytest.mark.parametrize("transform", [grad, jacfwd, jacrev, hessian])
def test_traced_numbers_that_are_passed_on_give_way_to_arrays(transform: Any) -> None:
    def function(x: Any, factor: Any, count: Any) -> Any:
        return (x * x * factor + count).sum()

    x = np.ones(3, np.float32)
    plain = transform(function)(x, 2.0, 1)
    found = tracegraph.jit(transform(function), device="host")(x, 2.0, 1)
    assert np.asarray(found).dtype == plain.dtype == np.float32
    np.testing.assert_array_equal(np.asarray(found), plain)


def test_transforms_nest_in_any_order() -> None:
    jit = functools.partial(tracegraph.jit, device="host")
    slope = 3 * 2.0**2
    for program in (
        grad(jit(cube)),
        jit(grad(cube)),
        jit(grad(jit(cube))),
        lambda x: jvp(cube, (x,), (1.0,))[1],
        jit(lambda x: jvp(jit(cube), (x,), (1.0,))[1]),
        lambda x: vjp(cube, x)[1](1.0)[0],
        jacfwd(cube),
        jit(jacrev(cube)),
        lambda x: linearize(cube, x)[1](1.0),
    ):
        np.testing.assert_allclose(np.asarray(program(2.0)), slope)
    for program in (grad(grad(cube)), jacfwd(grad(cube)), jacrev(jacfwd(cube)), hessian(cube)):
        np.testing.assert_allclose(np.asarray(program(2.0)), 12.0)
        np.testing.assert_allclose(np.asarray(jit(program)(2.0)), 12.0)


def test_an_inner_derivative_does_not_see_the_outer_variable() -> None:
    """Perturbation confusion: d/dx (x · d/dy (x + y)) is 1, not 2."""
    assert grad(lambda x: x * grad(lambda y: x + y)(1.0))(3.0) == 1.0
    assert grad(lambda x: x * jvp(lambda y: x * y, (1.0,), (1.0,))[1])(3.0) == 6.0
    assert grad(lambda x: jvp(lambda y: x * x * y, (1.0,), (1.0,))[1])(3.0) == 6.0


def test_a_small_network() -> None:
    def loss(x: Any) -> Any:
        hidden = np.tanh(A @ x + 1)
        weights = np.exp(hidden - hidden.max())
        return (weights / weights.sum() * np.arange(4.0)).sum() + np.linalg.norm(x)

    check_gradient(loss, X)
    check_second(loss, X)


def test_writes_and_views_of_local_arrays() -> None:
    def function(x: Any) -> Any:
        table = np.zeros((3, 3), like=x) + x
        table[1:, ::2] *= x[1:, None]
        row = table[2]
        row[:] = row[::-1] * 2
        return (table**2).sum()

    check_gradient(function, X)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[np.array([0, 2, 0, 0])].prod(),
        lambda x: x[[5 % 3, -1]].sum() ** 2,
        lambda x: np.maximum.accumulate(x * x).sum(),
        lambda x: np.add.at(y := x * 1, np.array([0, 0, 2]), x) or (y**2).sum(),
        lambda x: np.where(x > 0, np.sqrt(np.abs(x)), -x).sum(),
        lambda x: np.interp(0.5 * x, np.arange(3.0) - 1, np.array([1.0, 4.0, 9.0])).sum(),
        lambda x: np.cumsum(np.concatenate([x, x[::-1]]))[2:].prod(),
        lambda x: np.einsum("i,ij,j->", x, A[:3], x),
        lambda x: np.linalg.norm(np.outer(x, x)) + np.trace(np.outer(x, x)),
        lambda x: np.var(x) + np.std(x),
        lambda x: np.convolve(x, x).sum() + np.roll(x, 1) @ x,
        lambda x: np.abs(np.exp(1j * x) + x).sum(),
        lambda x: np.clip(x, -0.5, 0.5).sum() + np.ptp(x),
    ],
    ids=range(13),
)
def test_functions_of_numpy(function: Any) -> None:
    check_gradient(function, X)


def test_reads_out_of_range_have_the_derivative_of_the_nearest_element() -> None:
    def function(x: Any, i: Any) -> Any:
        return x[i] * 1.0

    slope = tracegraph.jit(grad(function), device="host")
    np.testing.assert_array_equal(np.asarray(slope(X, 7)), [0, 0, 1])
    rows = tracegraph.jit(grad(lambda x, i: x[i].sum()), device="host")
    np.testing.assert_array_equal(np.asarray(rows(X, np.array([7, -9, 1]))), [1, 1, 1])


def test_the_last_of_several_writes_has_the_derivative() -> None:
    def function(u: Any, i: Any) -> Any:
        table = np.zeros(3, like=u)
        table[i] = u
        return (table * np.array([1.0, 10.0, 100.0])).sum()

    slope = tracegraph.jit(grad(function), device="host")
    np.testing.assert_array_equal(np.asarray(slope(X, np.array([2, 0, 2]))), [0, 1, 100])


@pytest.mark.parametrize(
    ("function", "x", "expected"),
    [
        (np.abs, 0.0, 0.0),
        (lambda x: np.maximum(x, 0.0), 0.0, 0.5),
        (lambda x: np.stack([x, x]).max(), 1.0, 1.0),
        (lambda x: np.hypot(x, 0.0), 0.0, 0.0),
        (lambda x: x**0.0, 0.0, 0.0),
        (lambda x: x**2.5, 0.0, 0.0),
        (lambda x: 2.0**x, 1.0, 2 * np.log(2)),
        (lambda x: np.float64(0) ** x, 1.0, 0.0),
        (lambda x: np.logaddexp(x, x), 1.0, 1.0),
        (lambda x: np.logaddexp(x, 1.0), np.inf, 1.0),
        (lambda x: np.fmax(x, np.nan), 2.0, 1.0),
        (lambda x: np.clip(x, 0.0, 1.0), 1.0, 0.5),
        (lambda x: np.stack([x, 0 * x, x]).prod(), 3.0, 0.0),
        (lambda x: np.sign(x) + np.floor(x), 0.5, 0.0),
        (lambda x: np.fmod(x, 3.0) + x % -3.0, 4.5, 2.0),
    ],
)
def test_points_without_a_derivative(function: Any, x: float, expected: float) -> None:
    np.testing.assert_allclose(grad(function)(x), expected)


# trees and arguments


def test_gradients_have_the_structure_of_the_argument() -> None:
    @tracegraph.register_dataclass
    @dataclasses.dataclass
    class State:
        x: Any
        rest: Any

    state = State(X, {"w": [np.float32(2.0), None], "n": (1.5,)})
    found = grad(lambda s: (s.x.sum() * s.rest["w"][0] * s.rest["n"][0]).sum())(state)
    assert isinstance(found, State)
    np.testing.assert_allclose(found.x, np.full(3, 3.0))
    assert found.rest["w"][1] is None
    assert found.rest["w"][0].dtype == np.float32
    np.testing.assert_allclose(found.rest["n"][0], X.sum() * 2)


def test_argnums_choose_arguments_and_others_pass_untouched() -> None:
    def function(x: Any, n: Any, name: str, *, scale: Any) -> Any:
        assert type(n) is int
        assert name == "a"
        return sum(x.sum() for _ in range(n)) * scale

    np.testing.assert_array_equal(grad(function)(X, 3, "a", scale=2.0), np.full(3, 6.0))

    def two(x: Any, y: Any) -> Any:
        return (x * y).sum()

    assert grad(two, 1)(2.0, 3.0) == 2.0
    assert grad(two, -1)(2.0, 3.0) == 2.0
    assert grad(two, (1, 0))(2.0, 3.0) == (2.0, 3.0)
    assert grad(two, [0])(2.0, 3.0) == (3.0,)


def test_other_arrays_are_concrete_outside_of_traced_functions() -> None:
    def function(x: Any, mask: Any, table: Any) -> Any:
        assert type(mask) is np.ndarray
        total = x[np.flatnonzero(mask)].sum()
        return total * int(table[1]) if table[0] > 0 else total

    mask, table = np.array([True, False, True]), tracegraph.asarray([1, 5])
    np.testing.assert_array_equal(grad(function)(X, mask, table), [5, 0, 5])


def test_aux_comes_back_as_it_is() -> None:
    def function(x: Any) -> Any:
        return (x**2).sum(), {"twice": 2 * x, "count": 3}

    found, aux = grad(function, has_aux=True)(X)
    np.testing.assert_array_equal(found, 2 * X)
    np.testing.assert_array_equal(aux["twice"], 2 * X)
    assert aux["count"] == 3
    (value, aux), found = value_and_grad(function, has_aux=True)(X)
    np.testing.assert_allclose(value, (X**2).sum())
    out, tangent, aux = jvp(function, (X,), (X,), has_aux=True)
    np.testing.assert_allclose(tangent, 2 * out)
    out, pullback, aux = vjp(function, X, has_aux=True)
    np.testing.assert_array_equal(pullback(1.0)[0], 2 * X)
    out, derivative, aux = linearize(function, X, has_aux=True)
    np.testing.assert_allclose(derivative(X), 2 * out)
    for transform in (jacfwd, jacrev):
        found, aux = transform(function, has_aux=True)(X)
        np.testing.assert_array_equal(found, 2 * X)
        np.testing.assert_array_equal(aux["twice"], 2 * X)


def test_integers_have_no_tangents() -> None:
    def function(x: Any, n: Any) -> Any:
        return x * n, n + 1

    out, tangent = jvp(function, (2.0, 3), (1.0, None))
    assert (out, tangent) == ((6.0, 4), (3.0, None))
    _, tangent = jvp(function, (2.0, 3), (1.0, 0))
    assert tangent == (3.0, None)
    _, pullback = vjp(function, 2.0, 3)
    assert pullback((1.0, None)) == (3.0, None)
    gradients = grad(lambda x, n: x * n, (0, 1), allow_int=True)(2.0, 3)
    assert gradients == (3.0, None)


def test_results_are_arrays_of_the_callers_kind() -> None:
    assert type(grad(cube)(2.0)) is np.float64
    assert type(grad(lambda x: (x**2).sum())(X)) is np.ndarray
    found = grad(lambda x: (x**2).sum())(tracegraph.asarray(X))
    assert isinstance(found, tracegraph.Array)
    np.testing.assert_array_equal(np.asarray(found), 2 * X)
    looped = grad(lambda x: tracegraph.fori_loop(0, 2, lambda i, c: c * x, x).sum())
    assert isinstance(looped(tracegraph.asarray(X)), tracegraph.Array)


def test_gradients_are_arrays_of_their_own() -> None:
    y = np.ones(3)
    gradient = grad(lambda x, y: (x * y).sum())(X, y)
    gradient[:] = 7
    np.testing.assert_array_equal(y, 1)
    zero = grad(lambda x: 1.0 + 0 * x[0])(X)
    zero[:] = 1


@pytest.mark.parametrize("dtype", [np.float16, bfloat16, np.float32, np.float64])
def test_gradients_have_the_dtype_of_the_argument(dtype: Any) -> None:
    x = np.array([0.5, 0.25], dtype)
    found = grad(lambda x: (np.sin(x) * 2.0 + x**3).sum())(x)
    assert found.dtype == dtype
    mixed = grad(lambda x: (x.astype(np.float64) * np.pi).sum())(x)
    assert mixed.dtype == dtype


def test_cotangents_are_cast_if_that_is_safe() -> None:
    _, pullback = vjp(lambda x: 2 * x, np.float32(1))
    assert pullback(1.0)[0].dtype == np.float32
    assert pullback(np.float64(1))[0] == 2
    with pytest.raises(errors.TangentMismatchError):
        pullback(1j)


# complex numbers


def test_the_gradient_of_a_real_function_of_a_complex_number() -> None:
    z = 1 + 2j
    assert grad(lambda z: np.abs(z) ** 2)(z) == 2 * z.conjugate()
    assert grad(lambda z: z.real * z.imag)(z) == 2 - 1j


def test_holomorphic_functions() -> None:
    z = 0.5 + 0.25j
    np.testing.assert_allclose(grad(np.sin, holomorphic=True)(z), np.cos(z))
    np.testing.assert_allclose(jacfwd(np.exp, holomorphic=True)(z), np.exp(z))
    np.testing.assert_allclose(jacrev(np.exp, holomorphic=True)(z), np.exp(z))
    for wrong in (
        lambda: grad(np.sin)(z),
        lambda: grad(np.abs, holomorphic=True)(z),
        lambda: grad(np.sin, holomorphic=True)(0.5),
        lambda: jacfwd(np.exp)(z),
        lambda: jacrev(np.exp)(z),
    ):
        with pytest.raises(errors.DifferentiatedTypeError):
            wrong()


# jacobians and linear functions


def test_jacobians_agree() -> None:
    def function(p: Any, s: Any) -> Any:
        return {"u": np.outer(p["a"], p["b"]) * s, "v": (p["a"] ** 2).sum()}

    p = {"a": X[:2], "b": X}
    forward, reverse = (t(function, (0, 1))(p, 2.0) for t in (jacfwd, jacrev))
    assert forward["u"][0]["a"].shape == (2, 3, 2)
    assert forward["u"][1].shape == (2, 3)
    expected = np.einsum("ik,j->ijk", np.eye(2), 2 * X)
    np.testing.assert_allclose(forward["u"][0]["a"], expected)
    for name in ("u", "v"):
        for key in ("a", "b"):
            np.testing.assert_allclose(forward[name][0][key], reverse[name][0][key], atol=1e-15)
        np.testing.assert_allclose(forward[name][1], reverse[name][1])


def test_a_hessian_is_symmetric_and_agrees_with_differences() -> None:
    def function(x: Any) -> Any:
        return np.sin(x[0] * x[1]) * np.exp(x[2]) + (x @ x) ** 2

    found = hessian(function)(X)
    np.testing.assert_allclose(found, found.T, atol=1e-14)
    check_second(function, X)


def test_jacfwd_goes_through_a_loop_of_unknown_length() -> None:
    def function(x: Any) -> Any:
        return tracegraph.while_loop(lambda c: (c**2).sum() < 9, lambda c: 2 * c, x)

    np.testing.assert_array_equal(jacfwd(function)(X), np.eye(3) * function(X)[0] / X[0])
    with pytest.raises(errors.ReverseLoopError):
        jacrev(function)(X)


def test_products_at_indices_that_no_two_lanes_share() -> None:
    """One index in each lane: all lanes together multiply no element twice."""
    rows = np.random.default_rng(3).uniform(0.5, 2, (5, 3))
    places = np.array([0, 2, 0, 1, 2])

    def product(x: Any, i: Any, u: Any) -> Any:
        return np.sin(x.at[i].multiply(u))

    def total(x: Any, u: Any) -> Any:
        return vmap(product)(x, places, u).sum()

    found = grad(total, (0, 1))(rows, rows[:, 0])
    by_lane = [
        grad(lambda x, u, i=i: product(x, i, u).sum(), (0, 1))(*each)
        for i, *each in zip(places, rows, rows[:, 0], strict=True)
    ]
    for got, wanted in zip(found, zip(*by_lane, strict=True), strict=True):
        np.testing.assert_allclose(got, wanted, 1e-14)
    check_gradient(lambda x: total(x, rows[:, 0]), rows)


def test_a_jacobian_runs_the_function_once_and_its_linear_part_for_all_columns() -> None:
    def function(x: Any) -> Any:
        return np.tanh(A @ np.sin(x))

    for transform in (jacfwd, jacrev):
        program = tracegraph.jit(transform(function), device="host").trace(X).program
        operations = [(eqn.op.name, eqn.outputs[0].type.shape) for eqn in walk(program.body)]
        names = [name for name, _ in operations]
        assert "scan" not in names
        assert [shape for name, shape in operations if name == "sin"] == [(3,)]
        assert [shape for name, shape in operations if name == "tanh"] == [A.shape[:1]]
        assert names.count("matmul") == 2  # one forwards, one for all columns


def test_a_jacobian_by_columns_runs_a_loop_of_unknown_length_for_all_at_once() -> None:
    def function(x: Any) -> Any:
        return tracegraph.while_loop(lambda c: (c**2).sum() < 9, lambda c: 2 * c, x)

    program = tracegraph.jit(jacfwd(function), device="host").trace(X).program
    loops = [eqn for eqn in walk(program.body) if eqn.op.name == "while_loop"]
    assert len(loops) == 2  # the function, and once more with the tangents
    shapes = [v.type.shape for v in loops[1].outputs]
    assert sorted(shapes) == [(3,), (3, 3)]  # the state is not repeated for each column


def test_jacobians_of_loops_agree() -> None:
    def function(x: Any) -> Any:
        last, ys = tracegraph.scan(lambda c, t: (np.tanh(c * t), c.sum()), x, A[:, :3])
        return last, ys

    for forward, reverse in zip(jacfwd(function)(X), jacrev(function)(X), strict=True):
        np.testing.assert_allclose(forward, reverse, atol=1e-15)


def test_jacobians_of_empty_arrays() -> None:
    assert jacfwd(lambda x: x * 2)(np.zeros(0)).shape == (0, 0)
    assert jacrev(lambda x: x.sum())(np.zeros(0)).shape == (0,)


def test_linear_functions_are_transposed() -> None:
    def function(x: Any, y: Any) -> Any:
        return A @ x / 2 - tracegraph.fori_loop(0, 3, lambda i, c: c * (i + 1), y[::-1])

    x, y = X, np.arange(4.0)
    transposed = linear_transpose(function, x, tracegraph.ArrayType("float64", (4,)))
    ct = np.arange(4.0) + 1
    left, right = transposed(ct)
    np.testing.assert_allclose(left, A.T @ ct / 2)
    np.testing.assert_allclose(right, -6 * ct[::-1])
    np.testing.assert_allclose(np.sum(left * x) + np.sum(right * y), np.sum(ct * function(x, y)))


@pytest.mark.parametrize(
    ("function", "op"),
    [
        (lambda x: np.sin(x), "sin"),
        (lambda x: x * x, "multiply"),
        (lambda x: x % 2.0, "remainder"),
        (lambda x: np.floor(x), "floor"),
        (lambda x: np.floor(x * 2), "floor"),
        (lambda x: x + np.sign(x * 2), "sign"),
        (lambda x: (x * 2).astype(int) * 1.0, "cast"),
        (lambda x: x * (x * 2 > 0), "greater"),
        (lambda x: stop_gradient(x * 2), "stop_gradient"),
        (lambda x: x + x[np.argmax(x * 2)], "argmax"),
        (lambda x: tracegraph.checkpoint(lambda x: stop_gradient(x * 2))(x), "stop_gradient"),
        (
            lambda x: tracegraph.fori_loop(0, 2, lambda i, c: stop_gradient(c * 2), x),
            "stop_gradient",
        ),
        (lambda x: tracegraph.fori_loop(0, 2, lambda i, c: c * x, x), "while_loop"),
    ],
    ids=[
        "sin",
        "product",
        "remainder",
        "floor",
        "floor behind",
        "sign behind",
        "cast",
        "mask",
        "stopped",
        "index",
        "stopped in a checkpoint",
        "stopped in a loop",
        "loop",
    ],
)
def test_functions_that_are_not_linear_are_not_transposed(function: Any, op: str) -> None:
    with pytest.raises(errors.NonlinearError) as caught:
        linear_transpose(function, X)(X)
    assert str(caught.value).startswith(f"linear_transpose: {op} is not linear")
    assert "test_transforms.py:" in str(caught.value)


def test_linear_functions_with_rules_and_checkpoints_are_transposed() -> None:
    doubled = tracegraph.custom_jvp(lambda x: 2 * x)
    doubled.defjvp(lambda p, t: (doubled(*p), doubled(*t)))
    pulled = tracegraph.custom_vjp(lambda x: 2 * x)
    pulled.defvjp(lambda x: (2 * x, None), lambda _, ct: (2 * ct,))
    for function in (
        doubled,
        pulled,
        lambda x: doubled(doubled(x)) / 2,
        tracegraph.checkpoint(lambda x: 2 * x + np.sin(A[0, 0])),
        linearize(lambda x: x * x, np.ones(3))[1],
    ):
        np.testing.assert_array_equal(linear_transpose(function, X)(X)[0], 2 * X)


def test_linear_functions_with_bounded_loops_are_transposed() -> None:
    def function(x: Any) -> Any:
        return tracegraph.while_loop(
            lambda c: c[1] < 3, lambda c: (c[0] * 2, c[1] + 1), (x, 0), max_steps=bound
        )[0]

    bound = 5
    for run in (lambda f: f, lambda f: tracegraph.jit(f, device="host")):
        (found,) = run(lambda ct: linear_transpose(function, X)(ct))(X)
        np.testing.assert_array_equal(np.asarray(found), 8 * X)
    bound = 2
    with pytest.raises(errors.StepLimitError):
        linear_transpose(function, X)(X)

    def loud(x: Any) -> Any:
        tracegraph.debug.print("{}", x)
        return 2 * x

    with pytest.raises(errors.TransformError, match=r"loud \(.*must have no effects.*print"):
        linear_transpose(loud, X)(X)


def test_a_linearized_function_runs_once(capsys: pytest.CaptureFixture[str]) -> None:
    def function(x: Any) -> Any:
        tracegraph.debug.print("run")
        return np.sin(x) * x

    out, derivative = linearize(function, X)
    np.testing.assert_allclose(out, np.sin(X) * X)
    for t in (X, 2 * X):
        np.testing.assert_allclose(derivative(t), (np.cos(X) * X + np.sin(X)) * t)
    assert capsys.readouterr().out == "run\n"


def test_stop_gradient() -> None:
    np.testing.assert_array_equal(grad(lambda x: (x * stop_gradient(x)).sum())(X), X)
    assert stop_gradient({"a": 3, "b": True}) == {"a": 3, "b": True}
    assert stop_gradient(np.float32(2)).dtype == np.float32
    out = tracegraph.jit(stop_gradient, device="host")({"a": X})
    np.testing.assert_array_equal(np.asarray(out["a"]), X)


def test_constants_of_the_trace_are_not_made_by_rules() -> None:
    """An eager call in a rule would make a cotangent a constant of the program."""

    def loss(x: Any) -> Any:
        return (np.ones(20) * np.sin(x)).sum()

    program = tracegraph.jit(grad(loss), device="host").trace(np.arange(20.0)).program
    assert len(program.constants) <= 1


# errors


def raised(function: Any, error: type[Exception]) -> str:
    with pytest.raises(error) as caught:
        function()
    return str(caught.value)


def test_errors_name_the_function_the_argument_and_the_types() -> None:
    text = raised(lambda: grad(lambda x: 2 * x)(X), errors.ScalarResultError)
    assert "must return a scalar, got f64[3]; sum it, or use jacrev" in text
    text = raised(lambda: grad(lambda x: (x, x))(2.0), errors.ScalarResultError)
    assert "got the tree (*, *); return one number, and other results beside it" in text
    text = raised(lambda: grad(lambda x: None)(2.0), errors.ScalarResultError)
    assert "got the tree None; a return is missing" in text
    text = raised(lambda: grad(lambda p: p["n"] * 2.0)({"n": 3}), errors.DifferentiatedTypeError)
    assert "p['n'] of" in text
    assert "pass 3.0 instead of 3" in text
    text = raised(lambda: grad(lambda x: x > 0)(2.0), errors.DifferentiatedTypeError)
    assert "returned bool[]" in text
    text = raised(lambda: jvp(cube, (X,), (X[:2],)), errors.TangentMismatchError)
    assert "tangents[0] is f64[3], got an array of type f64[2]" in text
    text = raised(lambda: jvp(cube, (X,), ((X, X),)), errors.TransformError)
    assert "tangents[0] is f64[3], got an instance of builtins.tuple" in text
    text = raised(lambda: jvp(cube, X, X), errors.TransformError)
    assert "primals must be a tuple with an entry for each argument" in text
    text = raised(lambda: jvp(cube, (X,), X), errors.TransformError)
    assert "tangents must be a tuple" in text
    text = raised(lambda: jvp(cube, (X,), ()), errors.TransformError)
    assert "structure" in text
    text = raised(lambda: grad(cube, 2)(X), errors.ArgumentNumberError)
    assert "argnums=2" in text
    text = raised(lambda: grad(cube)(x=X), errors.ArgumentNumberError)
    assert "got 0 of these; pass by position" in text
    text = raised(lambda: grad(cube, "x")(X), errors.ArgumentNumberError)  # type: ignore[arg-type]
    assert "argnums must be the position of an argument, or several, not 'x'" in text
    text = raised(lambda: grad(cube, has_aux=True)(2.0), errors.TransformError)
    assert "must return a pair" in text
    text = raised(lambda: grad(cube)("a"), errors.LeafTypeError)
    assert "x" in text
    text = raised(lambda: vjp(cube, X)[1](X[:1]), errors.TangentMismatchError)
    assert "cotangent" in text


@pytest.mark.parametrize(
    "call",
    [grad, value_and_grad, jacfwd, jacrev, tracegraph.checkpoint, linear_transpose,
     lambda f: vjp(f, X), lambda f: linearize(f, X), lambda f: jvp(f, (X,), (X,))],
)  # fmt: skip
def test_transforms_take_functions(call: Any) -> None:
    text = raised(lambda: call(X.sum()), errors.TransformError)
    assert "takes a function, not" in text
    assert "call what it returns" in text


def test_an_op_without_a_derivative_names_the_line() -> None:
    def function(x: Any) -> Any:
        return tracegraph.special.zeta(2 + x, 1.0).sum()

    text = raised(lambda: grad(function)(X), errors.DerivativeError)
    assert text.startswith("zeta cannot be differentiated here")
    assert "test_transforms.py:" in text


def test_an_op_of_ones_own_has_the_derivative_that_it_is_given() -> None:
    def sigmoid(name: str, derivative: Any) -> Any:
        return ufunc_op(
            np.cbrt,
            "1 / (1 + exp(-x)).",
            texts(f="(1 / (1 + exp(-{0})))"),
            name=name,
            reference=lambda x: 1 / (1 + np.exp(-x)),
            derivative=derivative,
        )

    try:
        op = sigmoid("sigmoid", Partials(lambda f, out, x: out * (1 - out)))
        check_gradient(lambda x: apply(op, x).sum(), X)
        check_second(lambda x: apply(op, x).sum(), X)
        bare = sigmoid("bare_sigmoid", None)
        text = raised(lambda: grad(lambda x: apply(bare, x).sum())(X), errors.DerivativeError)
        assert text.startswith("bare_sigmoid cannot be differentiated here: it has no rule")
    finally:
        for name in ("sigmoid", "bare_sigmoid"):
            registry._REGISTRY.pop(name, None)


def test_a_branch_on_a_value_says_that_the_function_is_traced() -> None:
    with pytest.raises(errors.TracerBoolError):
        grad(lambda x: x if x > 0 else -x)(2.0)
