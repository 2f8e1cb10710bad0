"""Derivatives inside of shard and of named lanes are those of the function of whole arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph import Mesh, PartitionSpec, errors, shard

P = PartitionSpec
N = 4
MESH = Mesh(N, "x", device="host")
rng = np.random.default_rng(1)
W, X, Y = rng.standard_normal(3), rng.standard_normal((N * 5, 3)), rng.standard_normal(N * 5)
CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {}
"""By name, a loss of each device of (w, x, y), where all have w; and of the blocks of all."""


def psum(x: Any) -> Any:
    return tracegraph.psum(x, "x")


def case(whole: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def entered(own: Callable[..., Any]) -> Callable[..., Any]:
        CASES[own.__name__] = own, whole
        return own

    return entered


def total(each: Callable[..., Any]) -> Callable[..., Any]:
    """The sum over devices of a function of their blocks."""
    return lambda w, x, y: sum(each(w, x[k], y[k]) for k in range(N))


@case(total(lambda w, x, y: np.sum((x @ w - y) ** 2)))
def squares(w: Any, x: Any, y: Any) -> Any:
    return psum(np.sum((x @ w - y) ** 2))


@case(lambda w, x, y: N * np.sum(w**2) + x.sum())
def sum_of_what_all_have(w: Any, x: Any, y: Any) -> Any:
    return psum(np.sum(w**2)) + psum(x.sum())


@case(lambda w, x, y: np.sqrt(np.sum((x @ w) ** 2)) * np.sum(w))
def sum_in_the_middle(w: Any, x: Any, y: Any) -> Any:
    return np.sqrt(psum(np.sum((x @ w) ** 2))) * np.sum(w)


@case(lambda w, x, y: np.sum(np.sin(x @ w)) / N)
def mean(w: Any, x: Any, y: Any) -> Any:
    return tracegraph.pmean(np.sum(np.sin(x @ w)), "x")


@case(lambda w, x, y: (x @ w).max() - 2 * (x @ w).min())
def extremes(w: Any, x: Any, y: Any) -> Any:
    return tracegraph.pmax((x @ w).max(), "x") - 2 * tracegraph.pmin((x @ w).min(), "x")


@case(lambda w, x, y: np.sum((x @ w).ravel()[:-1] * (x @ w).ravel()[1:]))
def gathered(w: Any, x: Any, y: Any) -> Any:
    every = tracegraph.all_gather(x @ w, "x", tiled=True)
    return np.sum(every[:-1] * every[1:])


@case(lambda w, x, y: np.sum(np.sin((x @ w)[None] * y[:, None])))
def gathered_and_used_by_each(w: Any, x: Any, y: Any) -> Any:
    return psum(np.sum(np.sin(tracegraph.all_gather(x @ w, "x") * y)))


@case(lambda w, x, y: np.sum(np.diff((x @ w).ravel(), prepend=0.0) ** 2 * np.tile(np.arange(5), N)))
def neighbours(w: Any, x: Any, y: Any) -> Any:
    z = x @ w
    before, _ = tracegraph.halo(z, "x", boundary=0.0)
    return psum(np.sum((z - np.concatenate([before, z[:-1]])) ** 2 * np.arange(5)))


def _summed_rows(w: Any, x: Any) -> Any:
    return sum(np.sin(x[k].T @ (x[k] @ w)) for k in range(N)) / N


def _whole_loop(w: Any, x: Any, y: Any) -> Any:
    found = 0.0
    for _ in range(3):
        w = _summed_rows(w, x)
        found = found + w.sum()
    return found


@case(_whole_loop)
def sums_in_a_loop(w: Any, x: Any, y: Any) -> Any:
    def step(i: Any, state: Any) -> Any:
        w, found = state
        w = tracegraph.pmean(np.sin(x.T @ (x @ w)), "x")
        return w, found + w.sum()

    return tracegraph.fori_loop(0, 3, step, (w, 0.0))[1]


def _own_loop(w: Any, x: Any, y: Any) -> Any:
    v = w
    for _ in range(3):
        v = np.sin(v) + x.sum(0) * w
    return np.sum(v**2)


@case(total(_own_loop))
def carry_that_comes_to_differ(w: Any, x: Any, y: Any) -> Any:
    return psum(np.sum(tracegraph.fori_loop(0, 3, lambda i, v: np.sin(v) + x.sum(0) * w, w) ** 2))


def _whole_scan(w: Any, x: Any, y: Any) -> Any:
    c, found = w, 0.0
    for r in range(3):
        c = np.cos(c) * w + x.sum((0, 1)) * r
        found = found + sum(np.sum(c * x[k, 0]) ** 2 for k in range(N))
    return found


@case(_whole_scan)
def sums_in_a_scan(w: Any, x: Any, y: Any) -> Any:
    def step(c: Any, r: Any) -> Any:
        c = np.cos(c) * w + psum(x.sum(0) * r)
        return c, np.sum(c * x[0])

    return psum(np.sum(tracegraph.scan(step, w, np.arange(3.0))[1] ** 2))


def _whole_branches(w: Any, x: Any, y: Any) -> Any:
    return 2 * np.sum(w**2) + sum(np.sum(np.sin(w) * x[k, 0]) for k in (0, 1))


@case(_whole_branches)
def branches_of_their_own(w: Any, x: Any, y: Any) -> Any:
    def second() -> Any:
        return np.sum(np.sin(w) * x[0])

    return psum(tracegraph.cond(tracegraph.axis_index("x") > 1, lambda: np.sum(w**2), second))


@case(total(lambda w, x, y: np.sum(np.sin(w) * x[0])))
def a_branch_that_all_take(w: Any, x: Any, y: Any) -> Any:
    def second(w: Any) -> Any:
        return psum(np.sum(np.sin(w) * x[0]))

    return tracegraph.cond(psum(y.sum()) > 1e9, lambda w: np.sum(w**2), second, w)


def _whole_inner_branches(w: Any, x: Any, y: Any) -> Any:
    return np.sin(np.sum(w * x.sum((0, 1)))) * np.sum(w)


@case(_whole_inner_branches)
def a_branch_beside_one_that_keeps_what_differs(w: Any, x: Any, y: Any) -> Any:
    """Devices keep for the way back which branch all of them took, and beside it what differs."""

    def apart(w: Any) -> Any:
        return psum(np.sum(np.where(tracegraph.axis_index("x") == 0, w, 2 * w)))

    def summed(w: Any) -> Any:
        return np.sin(psum(np.sum(w * x.sum(0)))) * np.sum(w)

    def together(w: Any) -> Any:
        return tracegraph.cond(psum(np.sum(w)) < 1e6, summed, apart, w)

    return tracegraph.cond(psum(y.sum()) > 1e6, apart, together, w)


def _whole_steps(w: Any, x: Any, y: Any) -> Any:
    found = 0.0
    for k in range(N):
        v = w
        for _ in range(k + 1):
            v = np.sin(v) * w + x[k, 0]
        found = found + v.sum()
    return found


@case(_whole_steps)
def a_loop_that_ends_apart(w: Any, x: Any, y: Any) -> Any:
    own = tracegraph.axis_index("x")

    def step(state: Any) -> Any:
        return np.sin(state[0]) * w + x[0], state[1] + 1

    v, _ = tracegraph.while_loop(lambda state: state[1] <= own, step, (w, 0), max_steps=9)
    return psum(np.sum(v))


@case(lambda w, x, y: np.sum(np.sin(x @ w) * w.sum()))
def repeated_by_a_checkpoint(w: Any, x: Any, y: Any) -> Any:
    def inner(w: Any, x: Any) -> Any:
        return psum(np.sum(np.sin(x @ w) * w.sum()))

    return tracegraph.checkpoint(inner)(w, x)


def _outer(w: Any, x: Any) -> Any:
    return np.stack([np.sin(x[k] @ w)[:4, None] * w for k in range(N)])


@case(lambda w, x, y: np.sum(_outer(w, x).sum(0) ** 2 * y[:, :1]))
def scattered(w: Any, x: Any, y: Any) -> Any:
    z = tracegraph.psum_scatter(np.sin(x @ w)[:4, None] * w, "x")
    return psum(np.sum(z**2 * y[0]))


@case(lambda w, x, y: np.sum(np.swapaxes(_outer(w, x), 0, 1) ** 2 * x[:, :4]))
def exchanged(w: Any, x: Any, y: Any) -> Any:
    z = tracegraph.all_to_all(np.sin(x @ w)[:4, None] * w, "x", 0, 0, tiled=True)
    return psum(np.sum(z**2 * x[:4]))


@tracegraph.custom_vjp
def norm_of_rows(w: Any, x: Any) -> Any:
    return np.sum((x @ w) ** 2)


def _backward(residuals: Any, ct: Any) -> Any:
    w, x = residuals
    return ct * 2 * x.T @ (x @ w), ct * 2 * (x @ w)[:, None] * w


norm_of_rows.defvjp(lambda w, x: (norm_of_rows(w, x), (w, x)), _backward)


@case(lambda w, x, y: np.sum((x @ w) ** 2))
def a_rule_of_ones_own(w: Any, x: Any, y: Any) -> Any:
    return psum(norm_of_rows(w, x))


@tracegraph.custom_vjp
def norm_of_all_rows(w: Any, x: Any) -> Any:
    return psum(np.sum((x @ w) ** 2))


def _backward_of_all(residuals: Any, ct: Any) -> Any:
    w, x = residuals
    return psum(ct * 2 * x.T @ (x @ w)), ct * 2 * (x @ w)[:, None] * w


norm_of_all_rows.defvjp(lambda w, x: (norm_of_all_rows(w, x), (w, x)), _backward_of_all)


@case(lambda w, x, y: np.sum((x @ w) ** 2))
def a_rule_that_sums_itself(w: Any, x: Any, y: Any) -> Any:
    return norm_of_all_rows(w, x)


def _whole_root(w: Any, x: Any, y: Any) -> Any:
    return np.sum((x.sum((0, 1)) + w) ** 2 / 4)


@case(_whole_root)
def a_root_of_all_devices(w: Any, x: Any, y: Any) -> Any:
    """2 v = w + the sum of x over devices, by iteration."""

    def f(v: Any) -> Any:
        return psum(x.sum(0) - 2 * v / N) + w

    def solve(f: Any, v: Any) -> Any:
        return tracegraph.while_loop(
            lambda v: psum(np.sum(f(v) ** 2)) > 1e-24, lambda v: v + 0.3 * f(v), v
        )

    return np.sum(tracegraph.custom_root(f, 0 * w, solve, lambda g, y: y / (g(1 + 0 * y))) ** 2)


def gradients(own: Any) -> Any:
    return tracegraph.value_and_grad(own, argnums=(0, 1))


def blocks(w: Any, x: Any, y: Any) -> Any:
    return w, x.reshape(N, 5, 3), y.reshape(N, 5)


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_whole_arrays(name: str) -> None:
    own, whole = CASES[name]
    value, (by_w, by_x) = gradients(whole)(*blocks(W, X, Y))
    mapped = shard(
        gradients(own), mesh=MESH, in_specs=(P(), P("x"), P("x")), out_specs=(P(), (P(), P("x")))
    )
    values, (by_ws, by_xs) = tracegraph.jit(mapped)(W, X, Y)
    np.testing.assert_allclose(float(values), value, 1e-10)
    np.testing.assert_allclose(np.asarray(by_ws), by_w, 1e-9, 1e-10)
    np.testing.assert_allclose(np.asarray(by_xs).reshape(by_x.shape), by_x, 1e-9, 1e-10)
    lanes = tracegraph.vmap(gradients(own), (None, 0, 0), axis_name="x")
    values, (by_ws, by_xs) = lanes(*blocks(W, X, Y))
    np.testing.assert_allclose(values, [value] * N, 1e-10)
    np.testing.assert_allclose(by_ws, [by_w] * N, 1e-9, 1e-10)
    np.testing.assert_allclose(by_xs, by_x, 1e-9, 1e-10)


@pytest.mark.parametrize("name", [n for n in CASES if not n.startswith("a_r")])
def test_tangents_are_those_of_whole_arrays(name: str) -> None:
    own, whole = CASES[name]
    directions = (np.cos(W), np.cos(X), np.cos(Y))
    _, wanted = tracegraph.jvp(whole, blocks(W, X, Y), blocks(*directions))

    def tangent(*each: Any) -> Any:
        return tracegraph.jvp(own, each[:3], each[3:])[1]

    specs = (P(), P("x"), P("x")) * 2
    mapped = tracegraph.jit(shard(tangent, mesh=MESH, in_specs=specs, out_specs=P()))
    np.testing.assert_allclose(float(mapped(W, X, Y, *directions)), wanted, 1e-9, 1e-10)


def sharded(fun: Any, out_specs: Any) -> Any:
    in_specs = P(), P("x"), P("x")
    return tracegraph.jit(shard(fun, mesh=MESH, in_specs=in_specs, out_specs=out_specs))


def test_second_derivatives() -> None:
    def whole(w: Any) -> Any:
        return np.sum(np.sin(X @ w) ** 2)

    def own(w: Any, x: Any, y: Any) -> Any:
        def loss(w: Any) -> Any:
            return psum(np.sum(np.sin(x @ w) ** 2))

        backwards = tracegraph.jacrev(tracegraph.grad(loss))(w)
        return tracegraph.hessian(loss)(w), backwards, tracegraph.jacfwd(tracegraph.grad(loss))(w)

    wanted = tracegraph.hessian(whole)(W)
    for found in sharded(own, (P(), P(), P()))(W, X, Y):
        np.testing.assert_allclose(np.asarray(found), wanted, 1e-9, 1e-10)


def test_training_keeps_the_weights_the_same_on_all_devices() -> None:
    def loss(w: Any, x: Any, y: Any) -> Any:
        return tracegraph.pmean(np.mean((np.tanh(x @ w) - y) ** 2), "x")

    def train(w: Any, x: Any, y: Any) -> Any:
        def step(i: Any, w: Any) -> Any:
            return w - 0.1 * tracegraph.grad(loss)(w, x, y)

        scanned, losses = tracegraph.scan(lambda w, _: (step(0, w), loss(w, x, y)), w, length=10)
        return tracegraph.fori_loop(0, 10, step, w), scanned, losses

    def whole(w: Any) -> Any:
        return np.mean((np.tanh(X @ w) - Y) ** 2)

    wanted = W
    for _ in range(10):
        wanted = wanted - 0.1 * tracegraph.grad(whole)(wanted)
    looped, scanned, losses = sharded(train, (P(), P(), P()))(W, X, Y)
    np.testing.assert_allclose(np.asarray(looped), wanted, 1e-10)
    np.testing.assert_allclose(np.asarray(scanned), wanted, 1e-10)
    assert losses.shape == (10,)


@pytest.mark.parametrize("devices", [1, 2])
def test_one_device_along_an_axis_counts_as_several(devices: int) -> None:
    """What is the same on all devices is not found out by how many there are."""
    mesh = Mesh((2, devices), ("y", "x"), device="host")

    def fit(w: Any, x: Any, y: Any) -> Any:
        def step(w: Any, _: Any) -> Any:
            loss, by_w = tracegraph.value_and_grad(squares)(w, x, y)
            return w - 1e-3 * by_w, loss

        w, losses = tracegraph.scan(step, w, np.arange(3.0))
        return w, losses, tracegraph.vmap(psum, 1)(x)

    def alone(w: Any, x: Any, y: Any) -> Any:
        return tracegraph.vmap(fit, (None, 0, 0), None, axis_name="x")(w, x[None], y[None])

    specs = P(), P("x"), P("x")
    found = tracegraph.jit(shard(fit, mesh=mesh, in_specs=specs, out_specs=P()))(W, X, Y)
    for one, other in zip(found[:2], alone(W, X, Y), strict=False):
        np.testing.assert_allclose(np.asarray(one), other, 1e-9)
    with pytest.raises(errors.OutSpecError):
        shard(lambda x: x.sum(), mesh=mesh, in_specs=P("x"), out_specs=P())(X)


def test_weights_that_differ_are_trained_by_each_device_alone() -> None:
    """The carry begins the same, but comes to differ: the body is traced again."""

    def train(w: Any, x: Any, y: Any) -> Any:
        def step(i: Any, w: Any) -> Any:
            return w - 0.1 * tracegraph.grad(lambda w: np.mean((x @ w - y) ** 2))(w) - x[0]

        return tracegraph.fori_loop(0, 3, step, w)[None]

    found = sharded(train, P("x"))(W, X, Y)
    for k, (x, y) in enumerate(zip(X.reshape(N, 5, 3), Y.reshape(N, 5), strict=True)):
        w = W
        for _ in range(3):
            w = w - 0.1 * tracegraph.grad(lambda w, x=x, y=y: np.mean((x @ w - y) ** 2))(w) - x[0]
        np.testing.assert_allclose(np.asarray(found)[k], w, 1e-10)


def test_pullbacks_take_the_cotangents_that_results_have() -> None:
    def own(w: Any, x: Any, y: Any) -> Any:
        _, pullback = tracegraph.vjp(lambda w: psum(x @ w), w)
        _, derivative = tracegraph.linearize(lambda w: psum(x @ w), w)
        return pullback(psum(y))[0], derivative(w)

    by_w, tangent = sharded(own, (P(), P()))(W, X, Y)
    rows, cts = X.reshape(N, 5, 3).sum(0), Y.reshape(N, 5).sum(0)
    np.testing.assert_allclose(np.asarray(by_w), rows.T @ cts, 1e-10)
    np.testing.assert_allclose(np.asarray(tangent), rows @ W, 1e-10)

    def wrong(w: Any, x: Any, y: Any) -> Any:
        return tracegraph.vjp(lambda w: psum(x @ w), w)[1](y)[0]

    with pytest.raises(errors.ShardingError, match="cotangent of a result that is the same"):
        sharded(wrong, P())(W, X, Y)
