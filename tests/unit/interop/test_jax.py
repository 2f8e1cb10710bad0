"""`tracegraph.jax.wrap`: values, gradients of two orders, jit and vmap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph import errors

jax: Any = pytest.importorskip("jax")

wrapped = tracegraph.jax.wrap(lambda x, w: (np.tanh(x @ w) ** 2).sum())


def of_jax(x: Any, w: Any) -> Any:
    return (jax.numpy.tanh(x @ w) ** 2).sum()


def test_transformations_of_jax() -> None:
    rng = np.random.default_rng(0)
    x, w = (jax.numpy.asarray(rng.normal(size=s), "float32") for s in ((2, 3), (3, 2)))
    several = jax.numpy.stack([x, 2 * x, -x])
    for transformed in (
        lambda f: f(x, w),
        lambda f: jax.jit(jax.value_and_grad(f, (0, 1)))(x, w),
        lambda f: jax.vmap(f, (0, None))(several, w),
        lambda f: jax.jit(jax.vmap(jax.grad(f, 1), (0, None)))(several, w),
        lambda f: jax.grad(lambda x: jax.vmap(f, (0, None))(x, w).sum())(several),
        lambda f: jax.vmap(jax.vmap(f, (None, 0)), (0, None))(several, w[None]),
        lambda f: jax.jit(lambda *xs: jax.jvp(f, xs, xs))(x, w),
        lambda f: jax.hessian(f)(x, w),
        lambda f: jax.vmap(lambda t: jax.jvp(lambda x: f(x, w), (x,), (t,))[1])(several),
        lambda f: jax.grad(lambda w: jax.vmap(f, (2, None))(several.T.swapaxes(0, 1), w).sum())(w),
        lambda f: jax.grad(jax.checkpoint(lambda x: in_a_scan(f, x, w)))(x),
    ):
        found, expected = map(jax.tree.leaves, (transformed(wrapped), transformed(of_jax)))
        for one, other in zip(found, expected, strict=True):
            assert isinstance(one, jax.Array)
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def in_a_scan(f: Any, x: Any, w: Any) -> Any:
    def step(carry: Any, _: Any) -> Any:
        found = f(carry, w)
        return carry + found / 8, jax.lax.cond(found > 1, lambda: found, lambda: found * 2)

    return jax.lax.scan(step, x, None, length=3)[1].sum()


def test_numbers_take_the_dtypes_of_arrays() -> None:
    f, x = tracegraph.jax.wrap(lambda x, k: x * k), jax.numpy.ones(2, "bfloat16")
    for scalar in (2.5, jax.numpy.asarray(2.5), jax.numpy.float32(2.5)):
        expected = (x * scalar).dtype
        assert f(x, scalar).dtype == jax.jit(f)(x, scalar).dtype == expected
        assert jax.jvp(lambda k: f(x, k), (scalar,), (1.0,))[1].dtype == expected
    assert jax.grad(f)(3.0, 2.0) == 2


def test_what_jax_cannot_transpose_says_so() -> None:
    f = tracegraph.jax.wrap(lambda x: 2 * x)
    with pytest.raises(TypeError, match="is not known to be linear"):
        jax.linear_transpose(f, jax.numpy.ones(2))(jax.numpy.ones(2))


def test_arguments_and_results_are_trees_of_any_dtype() -> None:
    def body(state: Any, k: Any, scale: float) -> Any:
        return {"x": state["x"] * scale, "k": k + 1, "half": state["half"] * 2}

    f = tracegraph.jax.wrap(body)
    state = {"x": jax.numpy.ones(3), "half": jax.numpy.ones(2, "bfloat16")}
    eager = f(state, jax.numpy.arange(3), 2.5)
    jitted = jax.jit(f)(state, jax.numpy.arange(3), 2.5)
    for found in (eager, jitted):
        assert [str(found[key].dtype) for key in ("x", "k", "half")] == [
            *("float32", "int32", "bfloat16")
        ]
        np.testing.assert_array_equal(found["k"], [1, 2, 3])
    gradient = jax.grad(lambda state: f(state, jax.numpy.arange(3), 2.5)["x"].sum())(state)
    np.testing.assert_array_equal(gradient["x"], [2.5] * 3)


def test_results_have_the_structure_of_their_own_program() -> None:
    def either(x: Any) -> Any:
        return {"row": x} if x.ndim == 1 else {"rows": x * 3, "sum": x.sum()}

    f = tracegraph.jax.wrap(either)
    row, rows = jax.numpy.ones(2), jax.numpy.ones((2, 2))
    for called in (f, jax.jit(f)):
        for _ in range(2):
            assert list(called(row)) == ["row"]
            assert list(called(rows)) == ["rows", "sum"]
    assert {k: x.shape for k, x in jax.vmap(f)(rows).items()} == {"row": (2, 2)}
    assert jax.grad(lambda x: f(x)["rows"].sum())(rows).tolist() == [[3, 3]] * 2


def test_an_argument_that_is_none_is_named_as_the_caller_does() -> None:
    def scaled(x: Any, factors: Any) -> Any:
        return x * factors[0]

    x = jax.numpy.ones(3)
    with pytest.raises(errors.UnsupportedArgumentError) as caught:
        tracegraph.jax.wrap(scaled)(x, ["two"])
    assert str(caught.value).startswith("argument factors[0] of test_an_argument")
    assert len(caught.traceback) == 1
