"""vmap and derivatives: functions, axes and rules that do not fit."""

from __future__ import annotations

import numpy as np

import tracegraph
from tracegraph import grad, vmap
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import Indexed, Op


def VmapAxesError():
    vmap(lambda x, y: x + y, in_axes=(0,))(np.ones(3), np.ones(3))

    # Instead:
    vmap(lambda x, y: x + y, in_axes=(0, 0))(np.ones(3), np.ones(3))


def LaneCountError():
    vmap(lambda x, y: x + y)(np.ones(3), np.ones(4))

    # Instead:
    vmap(lambda x, y: x + y, in_axes=(0, None))(np.ones(3), np.ones(4))


def OutAxesError():
    vmap(lambda x: 2 * x, out_axes=None)(np.ones(3))

    # Instead:
    vmap(lambda x: 2 * x, out_axes=0)(np.ones(3))


def BatchRuleError():
    def element(index, operands, out):
        return operands[0][(out.shape[0] - 1 - index[0],)]

    backwards = Op(
        "backwards",
        "A vector from its end.",
        lambda x: x,
        lambda x: x[::-1],
        Indexed(element),
        list,
    )
    vmap(lambda x: apply(backwards, x))(np.ones((2, 3)))

    # Instead:
    vmap(lambda x: x[::-1])(np.ones((2, 3)))


def TransformError():
    tracegraph.jvp(lambda x, y: x * y, (2.0, 3.0), (1.0,))

    # Instead:
    tracegraph.jvp(lambda x, y: x * y, (2.0, 3.0), (1.0, 0.0))


def DifferentiatedTypeError():
    grad(lambda n: n**2)(3)

    # Instead:
    grad(lambda n: n**2)(3.0)


def ScalarResultError():
    grad(lambda x: x**2)(np.ones(3))

    # Instead:
    grad(lambda x: np.sum(x**2))(np.ones(3))


def ArgumentNumberError():
    grad(lambda x: x**2, argnums=1)(2.0)

    # Instead:
    grad(lambda x: x**2, argnums=0)(2.0)


def TangentMismatchError():
    tracegraph.jvp(np.sin, (np.ones(3),), (np.ones(4),))

    # Instead:
    tracegraph.jvp(np.sin, (np.ones(3),), (np.ones(3),))


def DerivativeError():
    def asked(x):
        return tracegraph.pure_callback(np.sin, tracegraph.ArrayType(float, ()), x)

    grad(asked)(1.0)

    # Instead:
    asked = tracegraph.custom_jvp(asked)
    asked.defjvp(lambda primals, tangents: (asked(*primals), np.cos(primals[0]) * tangents[0]))
    grad(asked)(1.0)


def NonlinearError():
    tracegraph.linear_transpose(lambda x: x * x, 1.0)(1.0)

    # Instead:
    tracegraph.linear_transpose(lambda x: 3 * x, 1.0)(1.0)


def ReverseLoopError():
    def settled(x):
        return tracegraph.while_loop(lambda y: y > 1, lambda y: y / 2, x)

    grad(settled)(9.0)

    # Instead:
    def settled(x):
        return tracegraph.while_loop(lambda y: y > 1, lambda y: y / 2, x, max_steps=100)

    grad(settled)(9.0)


def CustomRuleError():
    cubed = tracegraph.custom_jvp(lambda x: x**3)
    grad(cubed)(2.0)

    # Instead:
    cubed.defjvp(lambda primals, tangents: (cubed(*primals), 3 * primals[0] ** 2 * tangents[0]))
    grad(cubed)(2.0)
