"""Chains of elementwise operations and broadcasts."""

from __future__ import annotations

import numpy as np

from tests.corpus.case import normal, positive, program, whole


@program(normal(7, 5), normal(7, 5, seed=1))
def arithmetic_chain(x, y):
    return np.where(x > y, (x - y) * 2 + x / y, -x * 0.5) - np.minimum(x, y)


@program(positive(40, dtype="f4"), ulps=8)
def transcendental_chain_in_float32(x):
    return np.exp(np.sin(x)) + np.sqrt(x) * np.log1p(x), np.tanh(x)


@program(normal(33, dtype="c16"), ulps=16)
def complex_arithmetic(z):
    return z * np.conjugate(z) + 1j * z, np.abs(z), z.real - z.imag


@program(whole(3, 1, 5), whole(4, 1, seed=1), whole(5, seed=2))
def broadcasts_of_three_ranks(x, y, z):
    return x * y + z, x - z, y + 1


@program(whole(64, dtype="i4"), whole(64, dtype="i4", seed=1))
def integer_arithmetic(x, y):
    safe = np.where(y == 0, 1, y)
    return x // safe, x % safe, x << 3, (x ^ y) & 7, ~x | y, x**2, -x


@program(np.array([127, -128, 100, -1], "i1"), np.array([1, 255, 128, 3], "u1"))
def small_integers_wrap(x, y):
    return x + x, x * x, -x, y + y, y - 200, np.abs(x), x + y


@program(
    np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0]), np.array([1, np.nan, 0, -0.0, 0, 2.0])
)
def special_values(x, y):
    return (
        np.isnan(x),
        np.isfinite(x),
        np.signbit(x),
        x == y,
        x < y,
        np.fmax(x, 1),
        np.maximum(x, y),
        np.copysign(y, x),
        np.where(np.isnan(x), y, x),
    )


@program(positive(9), 2, 0.5)
def python_scalars(x, n, a):
    return x * a + n, n + 1, a * 2, n * a


@program(np.float32(1.5), np.array(3), True)
def zero_dimensional(a, n, flag):
    return a * 2, n + 1, np.logical_not(flag), a + n, np.where(flag, a, -a)


@program(whole(6), whole(6, seed=1))
def shared_work(x, y):
    common = x * y + 3
    return common * common, common.sum() + common, np.maximum(common, 0)


@program(normal(5, 4), 0.25)
def clip_and_round(x, a):
    return np.clip(x, -a, a), np.floor(x), np.ceil(x), np.trunc(x), np.rint(x * 4), np.sign(x)


@program(positive(50), ulps=4)
def powers(x):
    return x**3, x**-1.5, np.square(x), np.reciprocal(x), np.cbrt(x), np.hypot(x, 2)


@program(whole(8, dtype="bool"), whole(8, dtype="bool", seed=3))
def booleans(p, q):
    return p & q, p | q, p ^ q, ~p, np.logical_and(p, q), p < q, p + q, p * 3
