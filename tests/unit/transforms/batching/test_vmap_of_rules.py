"""vmap of functions that bring rules for their derivatives, before and after these are taken."""

from __future__ import annotations

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
    grad,
    jvp,
    vmap,
    while_loop,
)

X = np.random.default_rng(0).uniform(0.5, 2, (4, 3))
W = np.array([1.0, 2.0, 3.0])


@custom_jvp
def bent(x: Any, w: Any) -> Any:
    return np.sin(x) * w


@bent.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x, w), (t, s) = primals, tangents
    return bent(x, w), 7 * np.cos(x) * w * t + np.sin(x) * s


@custom_vjp
def steep(x: Any, w: Any) -> Any:
    return np.sum(x * w)


steep.defvjp(
    lambda x, w: (steep(x, w), (x, w)),
    lambda residuals, ct: (5 * ct * residuals[1], ct * residuals[0]),
)


def by_rule(x: Any, w: Any) -> Any:
    return bent(x, w).sum()


@checkpoint
def again(x: Any, w: Any) -> Any:
    return np.tanh(x * w).sum()


def root(x: Any, w: Any) -> Any:
    def newton(function: Any, start: Any) -> Any:
        return while_loop(
            lambda y: np.abs(function(y)).max() > 1e-12,
            lambda y: y - function(y) / (3 * y**2 + w),
            start,
        )

    def tangent(function: Any, b: Any) -> Any:
        return b / function(np.ones_like(b))

    return custom_root(lambda y: y**3 + y * w - x, x, newton, tangent).sum()


def system(x: Any, w: Any) -> Any:
    matrix = np.outer(w, w) * 0.01 + np.eye(3) * (2 + x[0])

    def solve(matvec: Any, b: Any) -> Any:
        return while_loop(
            lambda c: np.abs(matvec(c) - b).max() > 1e-13, lambda c: c + (b - matvec(c)) / 6, b
        )

    return custom_linear_solve(lambda v: matrix @ v, x, solve, symmetric=True).sum()


def in_a_branch(x: Any, w: Any) -> Any:
    def taken() -> Any:
        return root(x, w) + again(x, w) + by_rule(x, w) + system(x, w)

    return cond(x[0] > 1, taken, lambda: x.sum())


def steep_in_a_branch(x: Any, w: Any) -> Any:
    return cond(x[0] > 1, lambda: steep(x, w), lambda: x.sum())


FORWARD = [by_rule, again, root, system, in_a_branch]
each_function = pytest.mark.parametrize("function", [*FORWARD, steep, steep_in_a_branch])


@each_function
def test_values_and_gradients_are_those_of_each_lane(function: Any) -> None:
    def total(x: Any, w: Any) -> Any:
        return vmap(function, (0, None))(x, w).sum()

    values = vmap(function, (0, None))(X, W)
    np.testing.assert_allclose(values, [function(x, W) for x in X], rtol=1e-12)
    alone = [grad(function, argnums=(0, 1))(x, W) for x in X]
    lanes = vmap(grad(function, argnums=(0, 1)), (0, None))(X, W)
    for i in range(2):
        np.testing.assert_allclose(lanes[i], [each[i] for each in alone], rtol=1e-9)
    for run in (grad(total, argnums=(0, 1)), tracegraph.jit(grad(total, argnums=(0, 1)))):
        of_x, of_w = run(X, W)
        np.testing.assert_allclose(of_x, [each[0] for each in alone], rtol=1e-9)
        np.testing.assert_allclose(of_w, sum(each[1] for each in alone), rtol=1e-9)


@pytest.mark.parametrize("function", FORWARD)
def test_tangents_are_those_of_each_lane(function: Any) -> None:
    found = jvp(lambda x: vmap(function, (0, None))(x, W), (X,), (X,))[1]
    alone = [jvp(lambda x: function(x, W), (x,), (x,))[1] for x in X]
    np.testing.assert_allclose(found, alone, rtol=1e-9)


@pytest.mark.parametrize(
    ("function", "op"),
    [(by_rule, "custom_jvp"), (steep, "custom_vjp"), (root, "custom_root")],
)
def test_what_lanes_share_is_not_repeated(function: Any, op: str) -> None:
    program = tracegraph.jit(vmap(function, (0, None)), device="host").trace(X, W).program
    (call,) = [eqn for eqn in program.body.eqns if eqn.op.name == op]
    assert (3,) in [a.type.shape for a in call.operands]  # w


def test_the_matrix_that_lanes_share_is_not_repeated() -> None:
    matrix = np.outer(W, W) * 0.01 + 2 * np.eye(3)

    def solution(a: Any, b: Any) -> Any:
        return custom_linear_solve(
            lambda v: a @ v, b, lambda matvec, b: b @ np.linalg.inv(matrix), symmetric=True
        ).sum()

    lanes = vmap(solution, (None, 0))
    program = tracegraph.jit(lanes, device="host").trace(matrix, X).program
    (call,) = [eqn for eqn in program.body.eqns if eqn.op.name == "linear_solve"]
    assert (4, 3, 3) not in [a.type.shape for a in call.operands]
    found = grad(lambda a: lanes(a, X).sum())(matrix)
    np.testing.assert_allclose(found, sum(grad(solution)(matrix, b) for b in X), rtol=1e-12)


@custom_vjp
def logarithm(x: Any, w: Any) -> Any:
    return np.log(x) * w


logarithm.defvjp(
    lambda x, w: (logarithm(x, w), (x, w)),
    lambda kept, ct: (ct * kept[1] / kept[0], (ct * np.log(kept[0])).sum()),
)


def test_lanes_that_have_ended_add_nothing_to_what_all_share() -> None:
    """A lane that goes on would have logarithms of negative numbers: NaNs."""

    def lane(x: Any, n: Any, w: Any) -> Any:
        def step(c: Any) -> Any:
            return logarithm(c[0], w), c[1] + 1

        return while_loop(lambda c: c[1] < n, step, (x, 0), max_steps=5)[0].sum()

    starts, counts = np.array([[3.0, 4.0, 5.0], [30.0, 40.0, 50.0]]), np.array([1, 3])
    for transformed in (grad, lambda f: tracegraph.jit(grad(f))):
        found = transformed(lambda w: vmap(lane, (0, 0, None))(starts, counts, w).sum())(0.7)
        alone = [grad(lane, 2)(*each, 0.7) for each in zip(starts, counts, strict=True)]
        assert np.isfinite(found)
        np.testing.assert_allclose(found, sum(alone), rtol=1e-12)
