"""Loops whose elements never meet: each could make all its steps alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import tracegraph
from tracegraph import cond, fori_loop, scan, switch, vmap, while_loop

Function = Callable[..., Any]


def mandelbrot(real: Any, imaginary: Any) -> Any:
    """The steps that each point takes to leave the disc, at most 40."""

    def steps(re: Any, im: Any) -> Any:
        def step(s: Any) -> Any:
            x, y, n = s
            return x * x - y * y + re, 2 * x * y + im, n + 1

        def inside(s: Any) -> Any:
            return (s[0] * s[0] + s[1] * s[1] < 4) & (s[2] < 40)

        return while_loop(inside, step, (re * 0, im * 0, 0))[2]

    return vmap(vmap(steps, (0, None)), (None, 0))(real, imaginary)


def newton(x: Any) -> Any:
    """Roots of each number, each to its own end; some lanes make no step."""

    def root(x: Any) -> Any:
        def step(y: Any) -> Any:
            return 0.5 * (y + x / y)

        return while_loop(lambda y: np.abs(y * y - x) > 1e-10 * x, step, np.maximum(x, 1.0))

    return vmap(root)(x)


def rotations(vectors: Any, angles: Any) -> Any:
    """Vectors of three numbers, folded and scanned in each step until they are short."""

    def one(v: Any, angle: Any) -> Any:
        turn = np.stack([np.cos(angle), np.sin(angle), angle * 0 + 1])

        def step(s: Any) -> Any:
            v, n = s
            v = v * turn + np.cumsum(v)[::-1] * 0.125
            return v / (1.0 + np.sum(v * v)), n + 1

        return while_loop(lambda s: (np.sum(s[0] * s[0]) > 1e-3) & (s[1] < 9), step, (v, 0))

    return vmap(one)(vectors, angles)


def paths(start: Any, shocks: Any) -> Any:
    """Prices of many paths, date by date; all prices are kept."""

    def step(price: Any, shock: Any) -> Any:
        price = price * np.exp(0.1 * shock - 0.005)
        return price, np.maximum(price - 1.0, 0.0)

    return scan(step, start, shocks)


def walkers(position: Any, field: Any, steps: Any) -> Any:
    """Walkers that read a field wherever they are, as long as one says."""

    def step(i: Any, at: Any) -> Any:
        return (at + field[at % field.shape[0]] + i) % 97

    return fori_loop(0, steps, step, position)


def nested(x: Any, counts: Any) -> Any:
    """A loop of each lane inside of a loop of each lane, and a counted one."""

    def one(x: Any, count: Any) -> Any:
        def outer(s: Any) -> Any:
            x, n = s
            x = while_loop(lambda x: x < 10 * n + 10, lambda x: x * 1.5 + 1, x)
            x = fori_loop(0, 3, lambda i, x: x - 0.25 * i, x)
            return x, n + 1

        return while_loop(lambda s: s[1] < count, outer, (x, 0))

    return vmap(one)(x, counts)


def branching(x: Any, flags: Any) -> Any:
    """Branches that all lanes take together, and those of each lane, in a loop of dates."""

    def step(i: Any, x: Any) -> Any:
        x = cond(flags[i], lambda x: x + 1, lambda x: x * 0.5, x)
        x = switch(i % 3, [lambda x: x, lambda x: -x, np.abs], x)
        return vmap(lambda x: cond(x > 2, lambda x: x - 2, lambda x: x, x))(x)

    return fori_loop(0, flags.shape[0], step, x)


def histories(x: Any) -> Any:
    """Each lane writes into an array of its own, at places that its values choose."""

    def one(x: Any) -> Any:
        def step(i: Any, s: Any) -> Any:
            x, seen = s
            x = (5 * x + 3) % 16
            seen = seen.copy()
            seen[x] += i
            return x, seen

        return fori_loop(0, 12, step, (x, tracegraph.numpy.zeros(16, np.int64)))

    return vmap(one)(x)


def kept_steps(x: Any) -> Any:
    """Each lane keeps all its values until it ends, in an array of its own."""

    def one(x: Any) -> Any:
        def step(s: Any) -> Any:
            x, n, seen = s
            x, seen = x * 0.5 + 1, seen.copy()
            seen[n] = x
            return x, n + 1, seen

        start = (x, 0, tracegraph.numpy.zeros(8))
        return while_loop(lambda s: (s[0] > 2.1) & (s[1] < 8), step, start)

    return vmap(one)(x)


def skipped_work(x: Any) -> Any:
    """Lanes that take a branch with a loop in it, in a loop that ends apart."""

    def one(x: Any) -> Any:
        def halved(x: Any) -> Any:
            return while_loop(lambda x: x % 2 == 0, lambda x: x // 2, x)

        def step(s: Any) -> Any:
            x, n = s
            return cond(x % 2 == 0, halved, lambda x: 3 * x + 1, x), n + 1

        return while_loop(lambda s: (s[0] > 1) & (s[1] < 30), step, (x, 0))

    return vmap(one)(x)


def random_walk(x: Any, key: Any, steps: Any) -> Any:
    """All walkers share a key, which is returned, and how many steps were made."""

    def step(_: Any, c: Any) -> Any:
        x, key, n = c
        key, now = tracegraph.random.split(key)
        return x + tracegraph.random.uniform(now, x.shape), key, n + 1

    return fori_loop(0, steps, step, (x, key, 0))


def twice(x: Any) -> Any:
    """A loop of lanes in a loop whose steps mix them."""

    def step(i: Any, x: Any) -> Any:
        return newton(np.roll(x, 1) + 1.0)

    return fori_loop(0, 4, step, x)


_RNG = np.random.default_rng(5)

PROGRAMS: Mapping[str, tuple[Function, tuple[Any, ...]]] = {
    "mandelbrot": (mandelbrot, (np.linspace(-2, 1, 13), np.linspace(-1, 1, 11))),
    "newton": (newton, (np.array([1.0, 2, 3, 1e6, 0.5, 1e-3, 7, 7, 9, 1e4]),)),
    "rotations": (rotations, (_RNG.normal(size=(37, 3)), _RNG.normal(size=37))),
    "paths": (paths, (np.ones(150), _RNG.normal(size=(7, 150)))),
    "walkers": (walkers, (_RNG.integers(0, 97, 140), _RNG.integers(0, 9, 31), np.int64(6))),
    "nested": (nested, (_RNG.normal(size=33), _RNG.integers(0, 5, 33))),
    "branching": (branching, (_RNG.normal(size=40) * 3, np.array([True, False, True, True]))),
    "histories": (histories, (_RNG.integers(0, 16, 35),)),
    "kept_steps": (kept_steps, (np.arange(1.0, 41.0),)),
    "skipped_work": (skipped_work, (np.arange(1, 60),)),
    "random_walk": (random_walk, (np.zeros(70), np.array([0, 7], np.uint32), np.int64(4))),
    "no_step": (random_walk, (np.zeros(70), np.array([0, 7], np.uint32), np.int64(0))),
    "twice": (twice, (np.arange(1.0, 20.0),)),
}
"""Programs with arguments; each has a loop that can be one kernel with a thread for each lane."""
