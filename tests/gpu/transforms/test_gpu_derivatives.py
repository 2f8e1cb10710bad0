"""Derivatives as CUDA graphs: what the host gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.cases.derivatives import SMOOTH, Case, cases
from tests.helpers.parameters import one_of_each_kind
from tests.programs.gradients import PROGRAMS, X
from tracegraph import checkpoint, custom_jvp, custom_root, custom_vjp, grad, hessian, jvp, vjp
from tracegraph.ir.op import Op

DTYPES = (np.float64, np.complex64)


def both_modes(chosen: list[Case]) -> tuple[Any, Any]:
    """Tangents and cotangents of all cases of an op, as one program; and its argument."""
    rng = np.random.default_rng(6)
    arguments = []
    for case in chosen:
        x = [case.operands[i] for i in case.inexact]
        arguments.append((x, [np.asarray(rng.uniform(-1, 1, v.shape), v.dtype) for v in x]))

    def derivatives(given: Any) -> Any:
        found = []
        for case, (x, t) in zip(chosen, given, strict=True):
            out, tangent = jvp(case.of(case.inexact), x, t)
            _, pullback = vjp(case.of(case.inexact), *x)
            found.append((out, tangent, pullback(out)))
        return found

    return derivatives, arguments


def close(found: Any, expected: Any, tolerance: float) -> None:
    for a, b in zip(tracegraph.tree.leaves(found), tracegraph.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), tolerance, tolerance)


def kind(of: tuple[Op, Any]) -> Any:
    """The rule of an op is the same for both dtypes; its form decides which kernels there are."""
    op, dtype = of
    return op if dtype is np.float64 else (type(op.form), len(op.samples()[0].operands))


TAKEN = [(op, dtype) for op in SMOOTH for dtype in DTYPES if cases(op, dtype)]


@pytest.mark.parametrize(
    ("op", "dtype"),
    one_of_each_kind(TAKEN, kind),
    ids=lambda value: value.name if isinstance(value, Op) else np.dtype(value).str[1:],
)
def test_derivatives_of_every_op(op: Op, dtype: Any) -> None:
    chosen = cases(op, dtype)
    function, given = both_modes(chosen)
    expected = tracegraph.jit(function, device="host")(given)
    found = tracegraph.jit(function, device="cuda")(given)
    close(found, expected, 1e-12 if dtype is np.float64 else 1e-4)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_gradients_through_control_flow(program: Any) -> None:
    found = tracegraph.jit(grad(program), device="cuda")(X)
    close(found, grad(program)(X), 1e-10)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_second_derivatives_through_control_flow(program: Any) -> None:
    def product(x: Any) -> Any:
        return jvp(grad(program), (x,), (x,))[1]

    close(tracegraph.jit(product, device="cuda")(X), product(X), 1e-9)


def test_hessians() -> None:
    def function(x: Any) -> Any:
        return np.sin(x[0] * x[1]) * np.exp(x[2]) + (x @ x) ** 2

    close(tracegraph.jit(hessian(function), device="cuda")(X), hessian(function)(X), 1e-12)


def test_arrays_on_the_device_without_jit() -> None:
    x = tracegraph.asarray(X, device="cuda")
    for program in PROGRAMS[:4]:
        found = grad(program)(x)
        assert found.device.startswith("cuda")
        close(found, grad(program)(X), 1e-10)


def test_rules_checkpoints_and_roots() -> None:
    doubled = custom_jvp(np.sin)
    doubled.defjvp(
        lambda primals, tangents: (doubled(*primals), 2 * np.cos(primals[0]) * tangents[0])
    )
    clipped = custom_vjp(lambda x: x * 1)
    clipped.defvjp(lambda x: (x * 1, None), lambda _, ct: (np.clip(ct, -1.0, 1.0),))

    def newton(f: Any, x: Any) -> Any:
        def step(x: Any) -> Any:
            return x - f(x) / jvp(f, (x,), (np.ones_like(x),))[1]

        return tracegraph.while_loop(lambda x: np.abs(f(x)).max() > 1e-13, step, x)

    def function(x: Any) -> Any:
        a = np.exp(x)
        root = custom_root(lambda r: r * r - a, a, newton, lambda g, y: y / g(np.ones_like(y)))
        body = checkpoint(lambda c: np.tanh(np.exp(np.sin(c))) * x)
        looped = tracegraph.fori_loop(0, 5, lambda i, c: body(c), x)
        return (doubled(root) + 3 * clipped(x) + looped).sum()

    close(tracegraph.jit(grad(function), device="cuda")(X), grad(function)(X), 1e-12)


def test_a_long_recurrence_backwards() -> None:
    w = np.random.default_rng(0).normal(size=(64, 64)) / 8
    xs = np.random.default_rng(1).normal(size=(200, 64))

    def loss(w: Any) -> Any:
        last, ys = tracegraph.scan(lambda h, x: ((h := np.tanh(w @ h + x)), h.sum()), xs[0] * 0, xs)
        return last.sum() + (ys**2).sum()

    close(tracegraph.jit(grad(loss), device="cuda")(w), grad(loss)(w), 1e-10)
