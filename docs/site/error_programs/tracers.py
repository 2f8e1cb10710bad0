"""Traced values used where their elements are needed, or changed, or kept for too long."""

from __future__ import annotations

import math

import numpy as np

import tracegraph
from tracegraph import numpy as tnp


def TracerBoolError():
    @tracegraph.jit
    def absolute(x):
        if x < 0:
            return -x
        return x

    absolute(-2.0)

    # Instead:
    @tracegraph.jit
    def absolute(x):
        return tracegraph.cond(x < 0, lambda x: -x, lambda x: x, x)

    absolute(-2.0)


def TracerIntegerError():
    @tracegraph.jit
    def index(x):
        return int(x)

    index(2.5)

    # Instead:
    @tracegraph.jit
    def index(x):
        return x.astype(int)

    index(2.5)


def TracerIndexError():
    @tracegraph.jit
    def power(x, n):
        y = 1.0
        for _ in range(n):
            y = y * x
        return y

    power(2.0, 10)

    # Instead:
    @tracegraph.jit
    def power(x, n):
        return tracegraph.fori_loop(0, n, lambda i, y: y * x, 1.0)

    power(2.0, 10)


def StaticArgumentError():
    @tracegraph.jit
    def total(x, axis):
        return np.sum(x, axis=axis)

    total(np.ones((2, 3)), 0)

    # Instead:
    @tracegraph.jit(static_argnames="axis")
    def total(x, axis):
        return np.sum(x, axis=axis)

    total(np.ones((2, 3)), axis=0)


def TracerSliceError():
    @tracegraph.jit
    def window(x, start):
        return x[start : start + 2]

    window(np.arange(5.0), 1)

    # Instead:
    @tracegraph.jit
    def window(x, start):
        return tracegraph.dynamic_slice(x, (start,), (2,))

    window(np.arange(5.0), 1)


def TracerFloatError():
    @tracegraph.jit
    def root(x):
        return math.sqrt(x)

    root(2.0)

    # Instead:
    @tracegraph.jit
    def root(x):
        return np.sqrt(x)

    root(2.0)


def TracerComplexError():
    @tracegraph.jit
    def turned(x):
        return complex(x) * 1j

    turned(2.0)

    # Instead:
    @tracegraph.jit
    def turned(x):
        return x.astype(complex) * 1j

    turned(2.0)


def TracerItemError():
    @tracegraph.jit
    def largest(x):
        return x.max().item()

    largest(np.arange(3.0))

    # Instead:
    @tracegraph.jit
    def largest(x):
        return x.max()

    largest(np.arange(3.0)).item()


def TracerFormatError():
    @tracegraph.jit
    def shown(x):
        print(f"x = {x:.3f}")
        return x

    shown(2.0)

    # Instead:
    @tracegraph.jit
    def shown(x):
        tracegraph.debug.print("x = {:.3f}", x)
        return x

    shown(2.0)


def TracerArrayError():
    @tracegraph.jit
    def pair(x):
        return np.array([x, 2 * x])

    pair(1.0)

    # Instead:
    @tracegraph.jit
    def pair(x):
        return np.stack([x, 2 * x])

    pair(1.0)


def TracerIterationError():
    @tracegraph.jit
    def total(x):
        return sum(x)

    total(3.0)

    # Instead:
    @tracegraph.jit
    def total(x):
        return np.sum(x)

    total(3.0)


def BooleanMaskError():
    @tracegraph.jit
    def positive(x):
        return x[x > 0]

    positive(np.array([1.0, -2.0, 3.0]))

    # Instead:
    @tracegraph.jit
    def positive(x):
        return np.where(x > 0, x, 0)

    positive(np.array([1.0, -2.0, 3.0]))


def ShapeDependentError():
    @tracegraph.jit
    def distinct(x):
        return np.unique(x)

    distinct(np.array([3, 1, 3]))

    # Instead:
    @tracegraph.jit
    def distinct(x):
        return tnp.unique(x, size=2)

    distinct(np.array([3, 1, 3]))


def TracerHashError():
    @tracegraph.jit
    def looked_up(i):
        return {0: 1.0, 1: 2.5}[i]

    looked_up(1)

    # Instead:
    @tracegraph.jit
    def looked_up(i):
        return tnp.asarray([1.0, 2.5])[i]

    looked_up(1)


def EscapedTracerError():
    kept = []

    @tracegraph.jit
    def halved(x):
        kept.append(x / 2)
        return x

    halved(2.0)
    kept[0] + 1

    # Instead:
    @tracegraph.jit
    def halved(x):
        return x, x / 2

    halved(2.0)[1] + 1


def TracerWriteError():
    @tracegraph.jit
    def first_zero(x):
        x[0] = 0
        return x

    first_zero(np.ones(3))

    # Instead:
    @tracegraph.jit
    def first_zero(x):
        return x.at[0].set(0)

    first_zero(np.ones(3))


def UnrepresentableError():
    @tracegraph.jit
    def marked(x):
        y = x.copy()
        y[0] = np.nan
        return y

    marked(np.arange(3))

    # Instead:
    @tracegraph.jit
    def marked(x):
        y = x.astype(float)
        y[0] = np.nan
        return y

    marked(np.arange(3))


def InPlaceCastError():
    @tracegraph.jit
    def halved(n):
        m = n.copy()
        m /= 2
        return m

    halved(np.arange(3))

    # Instead:
    @tracegraph.jit
    def halved(n):
        return n / 2

    halved(np.arange(3))


def UnsupportedByTracerError():
    @tracegraph.jit
    def roots(p):
        return np.roots(p)

    roots(np.array([1.0, -3.0, 2.0]))

    # Instead:
    np.roots(np.array([1.0, -3.0, 2.0]))


def UnsupportedAttributeError():
    @tracegraph.jit
    def swapped(x):
        return x.byteswap()

    swapped(np.arange(3.0))

    # Instead:
    np.arange(3.0).byteswap()
