"""Programs of blocks: loops whose steps exchange arrays, written once in the words of any library.

A program takes a `Vocabulary`, and returns a function of blocks along an axis. Inputs are whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .vocabularies import Vocabulary

Blocks = Callable[..., Any]

TINY = np.float32(1e-30)
"""What is divided by at least: some make more steps than they need."""


@dataclass(frozen=True)
class ShardedRow:
    """A program and its inputs.

    `divided` says which inputs are divided over devices along their first axis; its result is
    divided unless `same`, which all devices have then. What is `apart` has no meaning on a single
    device: there is nobody to exchange with.
    """

    name: str
    steps: int
    program: Callable[[Vocabulary, int], Blocks]
    inputs: Callable[[np.random.Generator], Sequence[np.ndarray[Any, Any]]]
    divided: tuple[bool, ...] = (True,)
    same: bool = False
    apart: bool = False


def _normal(*shape: int) -> Callable[[np.random.Generator], list[np.ndarray[Any, Any]]]:
    return lambda rng: [rng.standard_normal(shape).astype(np.float32)]


def counted_sums(v: Vocabulary, steps: int) -> Blocks:
    """The mean over devices, again and again."""
    return lambda x: v.loop(steps, lambda x: 0.999 * v.psum(x) / v.count, x)


def sums_while(v: Vocabulary, steps: int) -> Blocks:
    """Blocks that stay different, less a part of their mean, until data says that it is done."""

    def mean(x: Any) -> Any:
        return v.psum(x * 1) / v.count  # PyTorch sums in place: it takes a copy

    def fun(x: Any) -> Any:
        def step(state: Any) -> Any:
            x, _, number = state
            middle = mean(x)
            return x - 0.001 * middle, middle, number + 1

        def goes_on(state: Any) -> Any:
            return (state[2] < steps) & (state[1][0] < 1e30)

        return v.loop_while(goes_on, step, (x, mean(x), 0))[0]

    return fun


def heat(v: Vocabulary, steps: int) -> Blocks:
    """Diffusion on a torus: rows of both neighbours in each step."""

    def step(u: Any) -> Any:
        above, below = v.neighbours(u)
        rows = v.np.concatenate([above, u, below])
        across = v.np.roll(u, 1, 1) + v.np.roll(u, -1, 1)
        return u + 0.2 * (rows[:-2] + rows[2:] + across - 4 * u)

    return lambda u: v.loop(steps, step, u)


def conjugate_gradients(v: Vocabulary, steps: int) -> Blocks:
    """A shifted Laplacian on a torus: rows of both neighbours and two sums in each step."""

    def dot(x: Any, y: Any) -> Any:
        return v.psum(v.np.sum(x * y))

    def matvec(p: Any) -> Any:
        above, below = v.neighbours(p)
        rows = v.np.concatenate([above, p, below])
        return 4.1 * p - rows[:-2] - rows[2:] - v.np.roll(p, 1, 1) - v.np.roll(p, -1, 1)

    def step(state: Any) -> Any:
        x, r, p, before = state
        q = matvec(p)
        alpha = before / v.np.maximum(dot(p, q), TINY)
        x, r = x + alpha * p, r - alpha * q
        after = dot(r, r)
        return x, r, r + after / v.np.maximum(before, TINY) * p, after

    return lambda b: v.loop(steps, step, (0 * b, b, b, dot(b, b)))[0]


def training(v: Vocabulary, steps: int) -> Blocks:
    """Gradient descent of a perceptron, whose gradients are summed over devices."""

    def fun(first: Any, second: Any, x: Any, y: Any) -> Any:
        def step(weights: Any) -> Any:
            first, second = weights
            hidden = v.np.tanh(x @ first)
            error = (hidden @ second - y) / (v.count * x.shape[0])
            back = (error @ second.T) * (1 - hidden * hidden)
            return first - 0.1 * v.psum(x.T @ back), second - 0.1 * v.psum(hidden.T @ error)

        return v.loop(steps, step, (first, second))

    return fun


def _data(rng: np.random.Generator) -> list[np.ndarray[Any, Any]]:
    shapes = (784, 256), (256, 10), (4096, 784), (4096, 10)
    return [(0.05 * rng.standard_normal(shape)).astype(np.float32) for shape in shapes]


def transforms(v: Vocabulary, steps: int) -> Blocks:
    """Waves on a torus, by Fourier transforms of two axes with a transpose between them."""

    def step(z: Any) -> Any:
        modes = v.transposed(v.np.fft.fft(z, axis=1))
        return v.transposed(v.np.fft.ifft(0.999 * modes, axis=1)) * 1

    return lambda x: v.as_float32(v.np.abs(v.loop(steps, step, x + 0j)))


def clusters(v: Vocabulary, steps: int) -> Blocks:
    """k-means: the sums and the counts of clusters over all points."""

    def fun(points: Any, centres: Any) -> Any:
        def step(centres: Any) -> Any:
            squares = v.np.sum(centres * centres, axis=1)
            nearest = v.np.argmin(squares - 2 * points @ centres.T, axis=1)
            belongs = v.as_float32(nearest[:, None] == v.np.arange(centres.shape[0]))
            sums, counts = v.psum(belongs.T @ points), v.psum(v.np.sum(belongs, axis=0))
            return sums / v.np.maximum(counts, 1)[:, None]

        return v.loop(steps, step, centres)

    return fun


def _points(rng: np.random.Generator) -> list[np.ndarray[Any, Any]]:
    points = rng.standard_normal((1 << 20, 16)).astype(np.float32)
    return [points, points[:64].copy()]


ROWS: tuple[ShardedRow, ...] = (
    ShardedRow("psum of 64 floats, counted", 2000, counted_sums, _normal(64), apart=True),
    ShardedRow("psum of 64 floats, while", 2000, sums_while, _normal(64), apart=True),
    ShardedRow("psum of 1 MB, counted", 500, counted_sums, _normal(1 << 18), apart=True),
    *(
        ShardedRow(
            f"heat {n} x {n}", max(4_000_000 // max(n * n // 512, 4000), 200), heat, _normal(n, n)
        )
        for n in (256, 1024, 2048, 4096, 8192)
    ),
    *(
        ShardedRow(f"conjugate gradients {n} x {n}", steps, conjugate_gradients, _normal(n, n))
        for n, steps in ((256, 500), (1024, 300), (4096, 200))
    ),
    ShardedRow("training 784-256-10", 200, training, _data, (False, False, True, True), True),
    ShardedRow("Fourier transforms 1024 x 1024", 100, transforms, _normal(1024, 1024)),
    ShardedRow("k-means 1 M x 16, 64", 20, clusters, _points, (True, False), True),
)
