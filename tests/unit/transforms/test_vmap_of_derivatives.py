"""vmap of derivatives, and derivatives of vmap: both give the derivatives of each lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from derivative_cases import SMOOTH, cases
from test_control_flow import PROGRAMS, X

import tracegraph
from tracegraph import grad, hessian, jvp, vjp, vmap
from tracegraph.ir.op import Op

LANES = np.stack([X, X[::-1] * 0.9, X * 1.1])
each_program = pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)


def by_lane(function: Callable[..., Any], *arguments: Any) -> Any:
    return np.stack([function(*lane) for lane in zip(*arguments, strict=True)])


def jit(function: Any) -> Any:
    return tracegraph.jit(function, device="host")


@each_program
def test_vmap_of_a_gradient(program: Any) -> None:
    wanted = by_lane(grad(program), LANES)
    for run in (vmap(grad(program)), jit(vmap(grad(program)))):
        np.testing.assert_allclose(run(LANES), wanted, rtol=1e-12, atol=1e-12)


@each_program
def test_gradient_of_vmap(program: Any) -> None:
    wanted = by_lane(grad(program), LANES)
    total = lambda x: vmap(program)(x).sum()  # noqa: E731
    for run in (grad(total), jit(grad(total))):
        np.testing.assert_allclose(run(LANES), wanted, rtol=1e-12, atol=1e-12)


@each_program
def test_tangents_of_vmap_and_vmap_of_tangents(program: Any) -> None:
    t = np.cos(np.arange(LANES.size)).reshape(LANES.shape)
    wanted = by_lane(lambda x, t: jvp(program, (x,), (t,))[1], LANES, t)
    one = vmap(lambda x, t: jvp(program, (x,), (t,))[1])(LANES, t)
    other = jvp(vmap(program), (LANES,), (t,))[1]
    np.testing.assert_allclose(one, wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(other, wanted, rtol=1e-12, atol=1e-12)


@each_program
def test_vmap_of_a_hessian(program: Any) -> None:
    found = vmap(hessian(program))(LANES[:2])
    wanted = by_lane(hessian(program), LANES[:2])
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("op", SMOOTH, ids=lambda op: op.name)
def test_tangents_and_cotangents_of_batched_ops(op: Op) -> None:
    for case in cases(op, np.float64)[:4]:
        for active in case.subsets():
            function = case.of(active)
            at = [np.asarray(case.operands[i]) for i in active]
            lanes = [np.stack([x, x * 0.98, x * 1.01]) for x in at]
            along = [np.cos(np.arange(x.size)).reshape(x.shape) for x in lanes]

            def tangent(*both: Any, f: Any = function, n: int = len(at)) -> Any:
                return jvp(f, both[:n], both[n:])[1]

            one = vmap(tangent)(*lanes, *along)
            other = jvp(vmap(function), tuple(lanes), tuple(along))[1]
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(one, by_lane(tangent, *lanes, *along), rtol=1e-12, atol=1e-12)

            ct = np.sin(1.0 + np.arange(one.size)).reshape(one.shape)

            def cotangents(*both: Any, f: Any = function, n: int = len(at)) -> Any:
                return vjp(f, *both[:n])[1](both[n])

            back = vmap(cotangents)(*lanes, ct)
            for got, also in zip(back, vjp(vmap(function), *lanes)[1](ct), strict=True):
                np.testing.assert_allclose(got, also, rtol=1e-10, atol=1e-12)
