"""Programs with linear functions, pullbacks, rules at high orders and Python numbers."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.devices import Device
from tracegraph import (
    cond,
    custom_jvp,
    custom_vjp,
    grad,
    jvp,
    linearize,
    scan,
    tree,
    vjp,
    vmap,
    while_loop,
)

X = np.array([0.5, 1.0, 2.5])


@custom_jvp
def stepped(x: Any) -> Any:
    """The exponential function, whose equations have the derivative 0."""
    return np.round(np.exp(x) * 1e6) / 1e6


stepped.defjvp(lambda p, t: ((y := stepped(*p)), y * t[0]))


def unbounded(x: Any) -> Any:
    return while_loop(lambda c: (c**2).sum() < 50, lambda c: c * 1.3 + np.sin(c), x)


def linearized_loop(x: Any) -> Any:
    """Two tangents through a loop of unknown length."""
    y, derivative = linearize(unbounded, x)
    return y, derivative(x), derivative(np.ones_like(x))


def linearized_lanes(x: Any) -> Any:
    return linearize(vmap(lambda s: while_loop(lambda c: c < 9, lambda c: c * (s + 1), s)), x)[1](x)


def columns(x: Any) -> Any:
    return tracegraph.jacfwd(unbounded)(x)


def third(x: Any) -> Any:
    """By a rule that calls its own function."""
    return vmap(grad(grad(grad(stepped))))(x)


def pullback_as_residual(x: Any) -> Any:
    function = custom_vjp(lambda x: np.sin(x) * x)
    function.defvjp(lambda x: vjp(lambda x: np.sin(x) * x, x), lambda pullback, ct: pullback(ct))
    return grad(lambda x: scan(lambda c, _: (function(c), None), x, length=3)[0].sum())(x)


def pullbacks_carried(x: Any) -> Any:
    def step(carry: Any, _: Any) -> Any:
        y, pullback = carry
        return vjp(np.sin, y), pullback(np.ones_like(y))[0]

    return scan(step, vjp(np.sin, x), length=4)[1]


def number_in_a_model(x: Any) -> Any:
    """A float32 model with a Python learning rate."""
    w = x.astype(np.float32)

    def loss(w: Any, rate: Any) -> Any:
        return scan(lambda c, _: (c - rate * c * c, None), w, length=3)[0].sum()

    return grad(loss)(w, 0.1), jvp(loss, (w, 0.1), (w, 1.0))


def shared_by_branches(x: Any) -> Any:
    def lane(flag: Any) -> Any:
        return cond(flag, lambda x: (x, x * 2), lambda x: (x, x * 3), x)

    return vmap(lane, out_axes=(None, 0))(x > 0.7)


def powers_of_indices(x: Any) -> Any:
    return tracegraph.fori_loop(1, 5, lambda i, c: c + i**2 + i**0.5 + i**-1, x)


LINEAR_PROGRAMS = (
    linearized_loop,
    linearized_lanes,
    columns,
    third,
    pullback_as_residual,
    pullbacks_carried,
    number_in_a_model,
    shared_by_branches,
    powers_of_indices,
)
PROGRAMS = {program.__name__: (program, (X,)) for program in LINEAR_PROGRAMS}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_what_they_give_eagerly(name: str, device: Device) -> None:
    program, arguments = PROGRAMS[name]
    found = tree.leaves(device.run(name, *arguments, order=Random(name)))
    for one, other in zip(found, tree.leaves(program(*arguments)), strict=True):
        exact = np.asarray(other)
        assert one.dtype == exact.dtype
        tolerance = 1e-5 if exact.dtype == np.float32 else 1e-10
        np.testing.assert_allclose(one, exact, tolerance, tolerance)
