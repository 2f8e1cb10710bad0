"""Small kernels as they are published: plain NumPy, with Python's loops over static extents."""

from __future__ import annotations

import numpy as np

from tests.corpus.case import program, whole


@program(whole(7, 6))
def heat_in_place(u):
    u = u.astype(float)
    for _ in range(3):
        u[1:-1, 1:-1] += (
            u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        ) * 0.25
    return u


@program(whole(5, 5))
def forward_substitution(a):
    n = a.shape[0]
    x = np.zeros_like(a[0])
    for i in range(n):
        x[i] = 1 - a[i, :i] @ x[:i]
    return x


@program(whole(40))
def histogram(x):
    counts = np.zeros_like(x, dtype=int, shape=8)
    np.add.at(counts, np.clip(x + 4, 0, 7).astype(int), 1)
    return counts


@program(whole(6, 7), whole(3, 3, seed=1))
def convolution(image, kernel):
    rows, columns = image.shape[0] - 2, image.shape[1] - 2
    out = np.zeros_like(image, shape=(rows, columns))
    for i in range(3):
        for j in range(3):
            out += image[i : i + rows, j : j + columns] * kernel[2 - i, 2 - j]
    return out


@program(np.array([1, 3, 4, 1, 2]), np.array([1, 4, 1, 2]))
def longest_common_subsequence(a, b):
    row = np.zeros_like(b, shape=b.shape[0] + 1)
    for i in range(a.shape[0]):
        before = row.copy()
        for j in range(b.shape[0]):
            longest = np.maximum(before[j + 1], row[j])
            row[j + 1] = np.where(a[i] == b[j], before[j] + 1, longest)
    return row


@program(whole(4, 3), whole(3, 5, seed=1), whole(5, 2, seed=2), ulps=4)
def perceptron(x, first, second):
    hidden = np.maximum(x @ first + 1, 0)
    scores = hidden @ second / 8
    scores = scores - scores.max(axis=1, keepdims=True)
    return scores.argmax(axis=1), np.exp2(scores)


@program(np.linspace(-2, 1, 7), np.linspace(-1, 1, 5))
def mandelbrot(re, im):
    c = re[None, :] + 1j * im[:, None]
    z, steps = np.zeros_like(c), np.zeros_like(c, dtype=int)
    for _ in range(8):
        inside = z.real**2 + z.imag**2 <= 4
        z = np.where(inside, z * z + c, z)
        steps += inside
    return steps


@program(np.abs(whole(5, 5)) + 1)
def floyd_warshall(distances):
    d = distances.copy()
    np.fill_diagonal(d, 0)
    for k in range(d.shape[0]):
        d = np.minimum(d, d[:, k, None] + d[None, k, :])
    return d


@program(whole(6, 6) > 0)
def game_of_life(cells):
    for _ in range(2):
        alive = cells.astype(int)
        around = sum(
            np.roll(alive, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j
        )
        cells = (around == 3) | (cells & (around == 2))
    return cells


@program(np.array([[1, 1], [1, 0]]), np.array([[1.0, 0.5], [0.25, 1.0]]))
def matrix_powers(fibonacci, chain):
    power, result = fibonacci, np.eye(2, dtype=int)
    for bit in (1, 0, 1, 1):
        result = result @ power if bit else result
        power = power @ power
    return result, np.linalg.matrix_power(chain, 3)


@program(whole(9, 2), np.array([0, 4, 4, 2]))
def sums_of_segments(x, starts):
    return np.add.reduceat(x, [0, 3, 3, 8]), np.maximum.reduceat(x, starts)


@program(whole(4, 6))
def by_columns(x):
    y = x.copy("F")
    y.reshape(-1, order="F")[:4] = 0
    return y, y.ravel("K"), x.reshape(3, 8, order="F").sum(axis=0)
