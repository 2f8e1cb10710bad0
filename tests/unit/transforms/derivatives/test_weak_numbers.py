"""Python's numbers stay weak where functions are differentiated: float32 models stay float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph import (
    checkpoint,
    cond,
    custom_jvp,
    custom_linear_solve,
    custom_root,
    custom_vjp,
    fori_loop,
    grad,
    jacfwd,
    jacrev,
    jit,
    jvp,
    linear_transpose,
    linearize,
    scan,
    tree,
    value_and_grad,
    vjp,
    vmap,
    while_loop,
)
from tracegraph.dtypes import bfloat16

Function = Callable[..., Any]


def step(w: Any, rate: Any) -> Any:
    return w - rate * w * w


by_jvp, by_vjp = custom_jvp(step), custom_vjp(step)


@by_jvp.defjvp
def rule(primals: Any, tangents: Any) -> Any:
    """A loop in a rule carries what a number's tangent makes of an array."""
    (w, rate), (tw, t_rate) = primals, tangents
    nothing = scan(lambda c, _: (c + t_rate * w, None), w * 0, length=2)[0] * 0
    return by_jvp(w, rate), tw * (1 - 2 * rate * w) - t_rate * w * w + nothing


by_vjp.defvjp(
    lambda w, rate: (by_vjp(w, rate), (w, rate)),
    lambda kept, ct: (ct * (1 - 2 * kept[1] * kept[0]), -(ct * kept[0] ** 2).sum()),
)


def newton(f: Function, x: Any) -> Any:
    return while_loop(lambda x: abs(f(x)) > 1e-5, lambda x: x - f(x) / jvp(f, (x,), (1.0,))[1], x)


MODELS: dict[str, Function] = {
    "scan": lambda w, r: scan(lambda c, _: (step(c, r), None), w, length=3)[0],
    "stacked": lambda w, r: scan(lambda c, x: (c * r, c + x), w[0], w)[1],
    "fori_loop": lambda w, r: fori_loop(0, 3, lambda i, c: step(c, r / (i + 1)), w),
    "while_loop": lambda w, r: while_loop(
        lambda c: c[1] < 3, lambda c: (step(c[0], r), c[1] + r**0), (w, 0.0), max_steps=9
    )[0],
    "branch": lambda w, r: cond(w[0] > 0, lambda w: w * r, lambda w: w + r, w),
    "checkpoint": lambda w, r: scan(lambda c, _: (checkpoint(step)(c, r), None), w, length=3)[0],
    "custom_jvp": lambda w, r: scan(lambda c, _: (by_jvp(c, r), None), w, length=3)[0],
    "custom_vjp": lambda w, r: scan(lambda c, _: (by_vjp(c, r), None), w, length=3)[0],
    "lanes": lambda w, r: vmap(lambda x: scan(lambda c, _: (step(c, r), None), x, length=3)[0])(w),
    "powers": lambda w, r: w * r**2 + w * r**0.5 + w / r**-1,
    "custom_root": lambda w, r: (
        w * custom_root(lambda x: x * x - w[1] * r, 1.5, newton, lambda g, y: y / g(1.0))
    ),
    "linear solve": lambda w, r: (
        w * custom_linear_solve(lambda x: x * w[0], r, lambda matvec, b: b / w[0], symmetric=True)
    ),
}

W = np.array([0.5, 0.25, 0.75], np.float32)


def transformed(model: Function) -> dict[str, Function]:
    """What has the dtypes of `model(w, r)`, w and r: the results, then tangents or cotangents."""

    def total(w: Any, r: Any) -> Any:
        return model(w, r).sum()

    def pulled(w: Any, r: Any) -> Any:
        y, pullback = vjp(model, w, r)
        return y, pullback(y * 0 + 1)

    def linear(w: Any, r: Any) -> Any:
        y, derivative = linearize(model, w, r)
        return y, derivative(w, 1.0)

    return {
        "grad": lambda w, r: (total(w, r), grad(total, (0, 1))(w, r)),
        "value_and_grad": value_and_grad(total, (0, 1)),
        "vjp": pulled,
        "jvp": lambda w, r: jvp(model, (w, r), (w, 1.0)),
        "linearize": linear,
        "second": lambda w, r: jvp(grad(total, (0, 1)), (w, r), (w, 1.0)),
        "tree": lambda w, r: grad(lambda p: total(p["w"], p["r"]))({"w": w, "r": r}),
        "jacfwd": lambda w, r: jacfwd(model)(w, r),
        "jacrev": lambda w, r: jacrev(model)(w, r),
        "lanes": lambda w, r: vmap(grad(total), (0, None))(np.stack([w, 2 * w]), r),
    }


@pytest.mark.parametrize("how", transformed(step))
@pytest.mark.parametrize("name", MODELS)
def test_float32_models_with_python_numbers_stay_float32(name: str, how: str) -> None:
    model = MODELS[name]
    assert np.asarray(model(W, 0.1)).dtype == "float32"
    with_numbers = transformed(model)[how]
    exact = transformed(model)[how](W.astype(float), 0.1)
    for run in (with_numbers, jit(with_numbers, device="host")):
        found = run(W, 0.1)
        for one, wanted in zip(tree.leaves(found), tree.leaves(exact), strict=True):
            of_rate = np.ndim(one) == 0 and one.dtype == "float64"
            assert of_rate or one.dtype == "float32", found
            np.testing.assert_allclose(np.asarray(one), wanted, rtol=2e-4, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, bfloat16, np.float32, np.complex64])
def test_numbers_beside_arrays_of_any_dtype(dtype: Any) -> None:
    w = W.astype(dtype)
    array = tracegraph.asarray(w)  # of NumPy's bfloat16, this would be float32
    eager = array * 0.5 + 0.5**2 * array
    y, pullback = vjp(lambda w, r: w * r + r**2 * w, w, 0.5)
    assert y.dtype == eager.dtype
    assert [x.dtype for x in pullback(y)] == [dtype, np.float64]
    assert jvp(lambda w, r: w * r + r**2 * w, (w, 0.5), (w, 1.0))[1].dtype == eager.dtype
    assert linearize(lambda w, r: w * r + r**2 * w, w, 0.5)[1](w, 1.0).dtype == eager.dtype


def test_integers_of_python_stay_weak() -> None:
    w = W.astype(np.float32)

    def model(w: Any, n: Any) -> Any:
        return scan(lambda c, _: (c * n + n, None), w, length=2)[0]

    y, pullback = vjp(model, w, 3)
    assert y.dtype == "float32"
    assert pullback(y)[1] is None
    out, tangent = jvp(model, (w, 3), (w, None))
    assert (out.dtype, tangent.dtype) == ("float32", "float32")
    counts = np.array([1, 2], np.int8)
    assert jvp(lambda x, n: counts * n, (1.0, 3), (1.0, None))[0].dtype == "int8"


def test_derivatives_by_numbers_are_those_of_numpy() -> None:
    value, gradient = value_and_grad(lambda x: x**3)(2.0)
    assert type(value) is type(gradient) is np.float64
    arrays = value_and_grad(lambda x: x**3)(tracegraph.asarray(2.0))
    assert all(type(x) is tracegraph.Array for x in arrays)
    assert type(tracegraph.hessian(lambda x: x**3)(2.0)) is np.float64
    assert type(grad(lambda z: abs(z) ** 2)(1 + 2j)) is np.complex128


def test_derivatives_by_numbers_are_strong_in_a_trace_as_outside() -> None:
    def function(w: Any, r: Any) -> Any:
        value, gradient = value_and_grad(lambda r: r * r)(r)
        y, tangent = jvp(lambda r: r * 2.0, (r,), (1.0,))
        return [w * x for x in (value, gradient, y, tangent, vjp(lambda r: r * r, r)[1](1.0)[0])]

    traced = jit(function, device="host")(W, 0.1)
    assert [x.dtype for x in function(W, 0.1)] == [x.dtype for x in traced] == [np.float64] * 5


def test_the_transpose_by_a_number() -> None:
    transposed = linear_transpose(lambda r: W * r, 1.0)
    assert transposed(W)[0].dtype == "float64"
    np.testing.assert_allclose(transposed(W)[0], (W * W).sum(), rtol=1e-6)
    assert linear_transpose(lambda w: w * 2.0, W)(W)[0].dtype == "float32"
