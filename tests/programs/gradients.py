"""Functions of three numbers, with loops and branches, whose derivatives tests take."""

from __future__ import annotations

from typing import Any

import numpy as np

import tracegraph
from tracegraph import cond, fori_loop, grad, scan, switch, while_loop

W = np.random.default_rng(1).normal(size=(3, 3))
X = np.array([0.3, -0.8, 0.6])


def rnn(x: Any) -> Any:
    def step(c: Any, t: Any) -> Any:
        return np.tanh(W @ c + t), (c * t).sum()

    last, ys = scan(step, x, np.linspace(0, 1, 5))
    return last.sum() + (ys**2).sum()


def reversed_scan(x: Any) -> Any:
    last, ys = scan(
        lambda c, t: (np.sin(W @ c * x + t), c * t), x, np.outer(np.arange(4.0), x), reverse=True
    )
    return (last * ys[0]).sum()


def over_slices(x: Any) -> Any:
    return scan(lambda c, t: (c + t * c, t), np.float64(1), x)[0]


def without_carry(x: Any) -> Any:
    return tracegraph.map(lambda t: np.exp(t) * x.sum(), x).sum()


def counted(x: Any) -> Any:
    return fori_loop(0, 7, lambda i, c: np.sin(c) * x + i * 0.1, x).sum()


def no_steps(x: Any) -> Any:
    return (fori_loop(0, 0, lambda i, c: np.sin(c) * x, x) ** 2).sum()


def in_place(x: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        c[i] = c[i - 1] * x[i] + c[i]
        return c

    return (fori_loop(1, 3, body, x) ** 2).sum()


def bounded(x: Any) -> Any:
    return while_loop(
        lambda c: (c**2).sum() < 50, lambda c: c * 1.3 + np.sin(c * x), x, max_steps=40
    ).sum()


def stopped(x: Any) -> Any:
    return while_loop(
        lambda c: c.sum() < 1e9, lambda c: c * x + W @ c, x, max_steps=3, on_max_steps="stop"
    ).sum()


def elementwise_branch(x: Any) -> Any:
    return cond(x.sum() < 1, lambda x: np.sin(x) * np.exp(x), lambda x: x**2, x).sum()


def heavy_branch(x: Any) -> Any:
    return switch(
        1, [lambda x: x, lambda x: W @ np.tanh(W @ x), lambda x: np.cumsum(x**2) ** 2], x
    ).sum()


def chosen_branch(x: Any) -> Any:
    number = (x[0] > 0).astype(int) + 1
    return switch(
        number, [lambda x: x, lambda x: W @ np.tanh(W @ x), lambda x: np.cumsum(x**2) ** 2], x
    ).sum()


def nested(x: Any) -> Any:
    def inner(c: Any) -> Any:
        return fori_loop(0, 2, lambda j, d: d * x + np.sin(d), c)

    return fori_loop(0, 3, lambda i, c: cond(c.sum() > 0, inner, lambda c: c - x, c), x).sum()


def loop_in_a_bounded_loop(x: Any) -> Any:
    def body(c: Any) -> Any:
        return fori_loop(0, 3, lambda i, d: d * 1.1 + 0.1 * np.cos(d * x), c)

    return while_loop(lambda c: (c**2).sum() < 30, body, x, max_steps=50).sum()


def bounded_in_a_scan(x: Any) -> Any:
    def root(t: Any) -> Any:
        a = t * t + 1
        return while_loop(
            lambda r: abs(r * r - a) > 1e-13 * a, lambda r: (r + a / r) / 2, a, max_steps=30
        )

    return scan(lambda c, t: (c * root(t), root(c)), np.float64(1), x)[0]


def gradient_inside(x: Any) -> Any:
    slope = grad(lambda y: (np.sin(y) * y * x).sum())
    return fori_loop(0, 4, lambda i, c: c - 0.1 * slope(c), x).sum()


def mixed_dtypes(x: Any) -> Any:
    def body(c: Any, t: Any) -> Any:
        value, count, single = c
        return (value * t, count + 1, single + value.astype(np.float32).sum()), count

    (value, _, single), _ = scan(body, (x, 0, np.float32(0)), np.linspace(0.5, 1, 4))
    return value.sum() + 0 * single.astype(float)


PROGRAMS = [
    rnn,
    reversed_scan,
    over_slices,
    without_carry,
    counted,
    no_steps,
    in_place,
    bounded,
    stopped,
    elementwise_branch,
    heavy_branch,
    chosen_branch,
    nested,
    loop_in_a_bounded_loop,
    bounded_in_a_scan,
    gradient_inside,
    mixed_dtypes,
]
