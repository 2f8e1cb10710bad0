"""vmap of derivatives, and derivatives of vmap: both give the derivatives of each lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.cases.derivatives import SMOOTH, cases
from tests.helpers.compiled import host_jit
from tests.programs.gradients import W, bounded, counted, in_place, nested, rnn
from tracegraph import cond, fori_loop, grad, hessian, jvp, scan, switch, vjp, vmap, while_loop
from tracegraph.ir.op import Op

X = np.array([0.6, -0.4, 1.2])


def written_until_it_ends(x: Any) -> Any:
    def body(carry: Any) -> Any:
        i, c = carry
        c[i % 3] = c[i - 1] * x[1] + 0.5
        return i + 1, c

    return (while_loop(lambda c: c[0] * x[0] < 2, body, (0, x), max_steps=9)[1] ** 2).sum()


def chosen(x: Any) -> Any:
    number = (x[0] > 0).astype(int) + (x[1] > 0)
    branches = [lambda x: x, lambda x: W @ np.tanh(W @ x), lambda x: np.cumsum(x**2) ** 2]
    return switch(number, branches, x).sum()


PROGRAMS = [rnn, counted, in_place, written_until_it_ends, bounded, chosen, nested]

LANES = np.stack([X, X[::-1] * 0.9, X * 1.1])
each_program = pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)


def by_lane(function: Callable[..., Any], *arguments: Any) -> Any:
    return np.stack([function(*lane) for lane in zip(*arguments, strict=True)])


@each_program
def test_vmap_of_a_gradient(program: Any) -> None:
    wanted = by_lane(grad(program), LANES)
    for run in (vmap(grad(program)), host_jit(vmap(grad(program)))):
        np.testing.assert_allclose(run(LANES), wanted, rtol=1e-12, atol=1e-12)


@each_program
def test_gradient_of_vmap(program: Any) -> None:
    wanted = by_lane(grad(program), LANES)
    total = lambda x: vmap(program)(x).sum()  # noqa: E731
    for run in (grad(total), host_jit(grad(total))):
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
    for case in cases(op, np.float64)[:2]:
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
            alone = by_lane(tangent, *lanes, *along)
            np.testing.assert_allclose(one, alone, rtol=1e-12, atol=1e-12)

            ct = np.sin(1.0 + np.arange(one.size)).reshape(one.shape)

            def cotangents(*both: Any, f: Any = function, n: int = len(at)) -> Any:
                return vjp(f, *both[:n])[1](both[n])

            back = vmap(cotangents)(*lanes, ct)
            for got, also in zip(back, vjp(vmap(function), *lanes)[1](ct), strict=True):
                np.testing.assert_allclose(got, also, rtol=1e-10, atol=1e-12)


def logarithm(x: Any, w: Any) -> Any:
    return cond(x[0] > 0, lambda: (np.log(x) * w).sum(), lambda: x.sum() + 1)


def quotient(x: Any, w: Any) -> Any:
    return cond(x[0] > 0, lambda: (w / x[0]).sum() + (np.sqrt(x[0]) * w ** x[0]).sum(), lambda: 0.0)


def product(x: Any, w: Any) -> Any:
    return cond(x[0] > 0, lambda: (np.outer(w, w) @ np.log(x)).sum(), lambda: x.sum())


def roots(x: Any, w: Any) -> Any:
    def step(x: Any) -> Any:
        return 0.5 * np.sqrt(x[0] - 1.5) * w**2 * x / x[0]

    return while_loop(lambda x: x[0] > 1.5, step, x, max_steps=20).sum()


def stacked(x: Any, w: Any) -> Any:
    def taken() -> Any:
        last, rows = scan(
            lambda c, t: (np.sqrt(c) * w.sum() + t, np.log(x) * w * c), x[0], np.arange(3.0)
        )
        return last + (np.sqrt(x[0]) * rows).sum()

    return cond(x[0] > 0, taken, lambda: x.sum())


def branched(x: Any, w: Any) -> Any:
    def taken() -> Any:
        y = cond(w[0] > 0, lambda: np.log(x) * w, lambda: x * w)
        z = fori_loop(0, 2, lambda i, y: y * w + np.sqrt(x[0]), y)
        return (np.sqrt(x[0]) * z).sum()

    return cond(x[0] > 0, taken, lambda: x.sum())


def looked_up(x: Any, w: Any) -> Any:
    return cond(
        x[0] > 0, lambda: (np.sqrt(x[0] * w[x[1].astype(int) % 2]) / x[0]).sum(), lambda: x.sum()
    )


def grown_from_shared(x: Any, w: Any) -> Any:
    def taken() -> Any:
        last = while_loop(lambda c: c.sum() < x[1], lambda c: c * 1.5, w, max_steps=20)
        return (last * np.log(x[0])).sum()

    return cond(x[0] > 0, taken, lambda: x.sum())


ISOLATED = [
    *(logarithm, quotient, product, roots, stacked, branched, looked_up, grown_from_shared),
]


@pytest.mark.parametrize("function", ISOLATED)
def test_no_nan_of_a_lane_that_runs_for_nothing(function: Any) -> None:
    x = np.array([[1.0, 2.0], [-1.0, 0.0], [0.0, 3.0], [4.0, 5.0]])
    w = np.array([1.2, 0.7])

    def total(x: Any, w: Any) -> Any:
        return vmap(function, (0, None))(x, w).sum()

    of_x, of_w = host_jit(grad(total, argnums=(0, 1)))(x, w)
    alone = [grad(function, argnums=(0, 1))(lane, w) for lane in x]
    np.testing.assert_allclose(of_x, [each[0] for each in alone], rtol=1e-12)
    np.testing.assert_allclose(of_w, sum(each[1] for each in alone), rtol=1e-12)
    ones = np.ones_like(x), np.ones_like(w)
    tangents = [jvp(function, (lane, w), (ones[0][0], ones[1]))[1] for lane in x]
    np.testing.assert_allclose(jvp(total, (x, w), ones)[1], sum(tangents), rtol=1e-12)
