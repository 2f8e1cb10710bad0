"""Loops and branches that were given, or return, what they cannot use."""

from __future__ import annotations

import numpy as np

import tracegraph
from tracegraph import cond, fori_loop, scan, switch, while_loop


def NotCallableError():
    cond(True, 1.0, 2.0)

    # Instead:
    cond(True, lambda: 1.0, lambda: 2.0)


def EndlessTraceError():
    @tracegraph.jit
    def factorial(n):
        return cond(n <= 1, lambda n: 1, lambda n: n * factorial(n - 1), n)

    factorial(5)

    # Instead:
    @tracegraph.jit
    def factorial(n):
        return fori_loop(2, n + 1, lambda i, product: i * product, 1)

    factorial(5)


def ParametersError():
    fori_loop(0, 3, lambda total: total + 1, 0)

    # Instead:
    fori_loop(0, 3, lambda i, total: total + 1, 0)


def LeafTypeError():
    while_loop(lambda s: s["n"] < 9, lambda s: {**s, "n": s["n"] + 1}, {"n": 0, "name": "counter"})

    # Instead:
    while_loop(lambda s: s["n"] < 9, lambda s: {"n": s["n"] + 1}, {"n": 0})


def PredicateError():
    cond(np.array([True, False]), lambda: 1, lambda: 2)

    # Instead:
    cond(np.any(np.array([True, False])), lambda: 1, lambda: 2)


def IntegerError():
    fori_loop(0, 2.5, lambda i, total: total + i, 0)

    # Instead:
    fori_loop(0, 3, lambda i, total: total + i, 0)


def BoundRangeError():
    fori_loop(np.int8(0), 1000, lambda i, total: total + 1, 0)

    # Instead:
    fori_loop(0, 1000, lambda i, total: total + 1, 0)


def NoBranchesError():
    switch(0, [])

    # Instead:
    switch(0, [lambda: 1.0])


def ConditionError():
    @tracegraph.jit
    def halved(x):
        return while_loop(lambda x: x > 1, lambda x: x / 2, x)

    halved(np.array([3.0, 5.0]))

    # Instead:
    @tracegraph.jit
    def halved(x):
        return while_loop(lambda x: np.any(x > 1), lambda x: x / 2, x)

    halved(np.array([3.0, 5.0]))


def StructureError():
    @tracegraph.jit
    def counted(x):
        return fori_loop(0, 3, lambda i, carry: (carry[0] + 1, carry[1], i), (x, 0))

    counted(1.0)

    # Instead:
    @tracegraph.jit
    def counted(x):
        return fori_loop(0, 3, lambda i, carry: (carry[0] + 1, i), (x, 0))

    counted(1.0)


def LeafMismatchError():
    @tracegraph.jit
    def total(x):
        return fori_loop(0, 3, lambda i, s: s + x[i], np.int64(0))

    total(np.ones(3))

    # Instead:
    @tracegraph.jit
    def total(x):
        return fori_loop(0, 3, lambda i, s: s + x[i], np.float64(0))

    total(np.ones(3))


def ScanBodyError():
    scan(lambda total, x: total + x, 0.0, np.arange(3.0))

    # Instead:
    scan(lambda total, x: (total + x, None), 0.0, np.arange(3.0))


def ScanLengthError():
    scan(lambda c, xy: (c, xy[0] + xy[1]), 0.0, (np.ones(3), np.ones(4)))

    # Instead:
    scan(lambda c, xy: (c, xy[0] + xy[1]), 0.0, (np.ones(3), np.ones(3)))


def StaticLengthError():
    @tracegraph.jit
    def bounded(x, limit):
        return while_loop(lambda x: x > 1, lambda x: x / 2, x, max_steps=limit)

    bounded(9.0, 5)

    # Instead:
    @tracegraph.jit
    def bounded(x, limit):
        return while_loop(lambda s: s[0] > 1, lambda s: (s[0] / 2, s[1] + 1), (x, 0))[0]

    bounded(9.0, 5)


def StepLimitOptionError():
    while_loop(lambda x: x > 1, lambda x: x / 2, 9.0, max_steps=-1)

    # Instead:
    while_loop(lambda x: x > 1, lambda x: x / 2, 9.0, max_steps=100)


def ScheduleError():
    fori_loop(0, 3, lambda i, x: x + 1, 0.0, schedule="fast")

    # Instead:
    fori_loop(0, 3, lambda i, x: x + 1, 0.0, schedule="unrolled")


def CheckpointsError():
    fori_loop(0, 3, lambda i, x: x + 1, 0.0, checkpoints="all")

    # Instead:
    fori_loop(0, 3, lambda i, x: x + 1, 0.0, checkpoints=2)


def UnschedulableError():
    @tracegraph.jit(device="host")
    def halved(x):
        return while_loop(lambda x: np.any(x > 1), lambda x: x / 2, x, schedule="per_lane")

    halved(np.linspace(0, 9, 64))

    # Instead:
    @tracegraph.jit(device="host")
    def halved(x):
        return while_loop(lambda x: np.any(x > 1), lambda x: x / 2, x)

    halved(np.linspace(0, 9, 64))


def ProgressError():
    fori_loop(0, 3, lambda i, x: x + 1, 0.0, progress=3)

    # Instead:
    fori_loop(0, 3, lambda i, x: x + 1, 0.0, progress=lambda step, total: None)


def EffectInConditionError():
    def large(x):
        tracegraph.debug.print("x = {}", x)
        return x > 1

    while_loop(large, lambda x: x / 2, 9.0)

    # Instead:
    def halved(x):
        tracegraph.debug.print("x = {}", x)
        return x / 2

    while_loop(lambda x: x > 1, halved, 9.0)


def StepLimitError():
    tracegraph.jit(lambda x: while_loop(lambda x: x > 0, lambda x: x + 1, x, max_steps=10))(1)

    # Instead:
    tracegraph.jit(lambda x: while_loop(lambda x: x > 0, lambda x: x - 1, x, max_steps=10))(1)


def IndexRangeError():
    with tracegraph.check_indices():
        tracegraph.jit(lambda x, i: x[i])(np.arange(3.0), 7)

    # Instead:
    with tracegraph.check_indices():
        tracegraph.jit(lambda x, i: x[np.clip(i, 0, 2)])(np.arange(3.0), 7)


def RepeatedIndexError():
    x = tracegraph.asarray(np.zeros(3))
    x.at[np.array([1, 1])].add(1.0, unique=True)

    # Instead:
    x.at[np.array([1, 1])].add(1.0)
