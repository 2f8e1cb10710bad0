"""Published kernels of applications: physics, networks, signals, clustering."""

from __future__ import annotations

import numpy as np

from tests.corpus.case import normal, positive, program, whole
from tracegraph import while_loop


@program(positive(4), normal(4, 3), normal(4, 3, seed=1), ulps=256)
def n_body(mass, position, velocity):
    position, velocity, dt = position.copy(), velocity.copy(), 0.01

    def acceleration():
        x, y, z = position[:, 0:1], position[:, 1:2], position[:, 2:3]
        dx, dy, dz = x.T - x, y.T - y, z.T - z
        inverse = (dx**2 + dy**2 + dz**2 + 0.1**2) ** -1.5
        return np.hstack([(d * inverse) @ mass[:, None] for d in (dx, dy, dz)])

    felt = acceleration()
    for _ in range(2):
        velocity += felt * dt / 2.0
        position += velocity * dt
        felt = acceleration()
        velocity += felt * dt / 2.0
    kinetic = 0.5 * np.sum(np.sum(mass * velocity.T**2))
    return position, velocity, kinetic


@program(
    whole(1, 2, 3, 2), np.array([[1, 2], [2, 0], [0, 1]]), whole(1, 3, 3, 2, seed=1),
    whole(1, 3, 2, 2, seed=2),
)  # fmt: skip
def scattering_self_energies(phonons, neighbours, electrons, gradients):
    sigma = np.zeros_like(electrons)
    frequencies = phonons.shape[1]
    for k in range(electrons.shape[0]):
        for e in range(electrons.shape[2]):
            for w in range(frequencies):
                for i in range(2):
                    for a in range(neighbours.shape[0]):
                        for b in range(neighbours.shape[1]):
                            if e - w >= 0:
                                there = electrons[k, neighbours[a, b], e - w]
                                moved = there * gradients[k, a, b, i]
                                sigma[k, a, e] += moved * phonons[0, w, a, i]
    return sigma


@program(normal(2, 3, 4), normal(2, 3, 4, seed=1), normal(2, 3, 4, seed=2), ulps=512)
def softmax_attention(queries, keys, values):
    scores = np.einsum("bqd,bkd->bqk", queries, keys) / np.sqrt(keys.shape[-1])
    weights = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    weights /= np.sum(weights, axis=-1, keepdims=True)
    return weights @ values


@program(normal(3, 2), normal(2, 8), normal(2, 8, seed=1), normal(8, seed=2), ulps=256)
def recurrent_cell(inputs, kernel, recurrent, bias):
    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    h, c = np.zeros_like(inputs[0]), np.zeros_like(inputs[0])
    outputs = []
    for x in inputs:
        i, f, g, o = np.split(x @ kernel + h @ recurrent + bias, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        outputs.append(h)
    return np.stack(outputs), c


@program(positive(1, 5, 5, 2), positive(2, 2, 2, 3, seed=1), positive(3, seed=2), ulps=256)
def convolutional_block(x, weights, bias):
    size, (n, height, width, _) = weights.shape[0], x.shape
    out = np.empty_like(x, shape=(n, height - size + 1, width - size + 1, weights.shape[-1]))
    for i in range(out.shape[1]):
        for j in range(out.shape[2]):
            window = x[:, i : i + size, j : j + size, :, np.newaxis]
            out[:, i, j, :] = np.sum(window * weights[np.newaxis], axis=(1, 2, 3))
    out = np.maximum(out + bias, 0)
    mean, deviation = np.mean(out, axis=0, keepdims=True), np.std(out, axis=(1, 2), keepdims=True)
    out = (out - mean) / np.sqrt(deviation + 1e-5) + out
    pooled = np.empty_like(out, shape=(n, 2, 2, out.shape[-1]))
    for i in range(2):
        for j in range(2):
            pooled[:, i, j, :] = np.max(out[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2], axis=(1, 2))
    return pooled.reshape(n, -1)


@program(normal(8) + 1j * normal(8, seed=1), ulps=4096)
def fourier_transform(x):
    n, y = x.shape[0], x.copy()
    length = n
    while length > 1:
        half = length // 2
        pairs = y.reshape(2, half, n // length)
        turns = np.exp(-2j * np.pi * np.arange(half) / length)[:, None]
        added = pairs[0] + pairs[1]
        y = np.stack([added, (pairs[0] - pairs[1]) * turns], axis=1).reshape(-1)
        length = half
    return y


@program(whole(12, 2), whole(3, 2, seed=4), ulps=32)
def k_means(points, centres):
    for _ in range(2):
        distances = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        labels = np.argmin(distances, axis=1)
        totals, counts = np.zeros_like(centres), np.bincount(labels, minlength=3)
        np.add.at(totals, labels, points)
        filled = totals / np.maximum(counts, 1)[:, None]
        centres = np.where(counts[:, None] > 0, filled, centres)
    return centres, labels


@program(normal(5, 5), ulps=128)
def go_fast(a):
    trace = 0.0
    for i in range(a.shape[0]):
        trace += np.tanh(a[i, i])
    return a + trace


@program(positive(6), positive(6, seed=1), positive(6, seed=2), positive(6, seed=3), ulps=128)
def arc_distance(theta_1, phi_1, theta_2, phi_2):
    between = np.sin((theta_2 - theta_1) / 2) ** 2
    around = np.sin((phi_2 - phi_1) / 2) ** 2
    temp = between + np.cos(theta_1) * np.cos(theta_2) * around
    return 2 * np.arctan2(np.sqrt(temp), np.sqrt(1 - temp))


@program(whole(5, 5), whole(5, 5, seed=1), np.int64(4), np.int64(3), np.int64(9))
def limited_sum(first, second, a, b, c):
    return np.clip(first, 2, 10) * a + second * b + c


@program(np.array([60, 100, 120, 30]), np.array([1, 2, 3, 1]), np.arange(6))
def knapsack(values, weights, capacities):
    best = np.zeros_like(capacities)
    for value, weight in zip(values, weights, strict=True):
        without = best.copy()
        before = np.where(capacities >= weight, without[capacities - weight] + value, 0)
        best = np.maximum(without, before)
    return best


@program(np.array([2, 0, 1, 3, 1, 2]))
def folded_pairs(bases):
    n = bases.shape[0]
    table = np.zeros_like(bases, shape=(n, n))
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            table[i, j] = np.maximum(table[i, j - 1], table[i + 1, j])
            paired = table[i + 1, j - 1] + (bases[i] + bases[j] == 3) if i < j - 1 else 0
            table[i, j] = np.maximum(table[i, j], paired)
            for k in range(i + 1, j):
                table[i, j] = np.maximum(table[i, j], table[i, k] + table[k + 1, j])
    return table


@program(normal(6), ulps=512)
def quadrature_and_interpolation(y):
    x = np.linspace(0, 1, y.shape[0])
    area = np.trapezoid(y, x)
    slope = np.gradient(y, x)
    middle = np.interp((x[1:] + x[:-1]) / 2, x, y)
    return area, slope, middle, np.convolve(y, np.array([0.25, 0.5, 0.25]), "same")


@program(normal(40), np.linspace(-2, 2, 9), positive(40, seed=1), ulps=64)
def binned(x, edges, weights):
    counts, _ = np.histogram(x, edges)
    weighed, bounds = np.histogram(x, 5, weights=weights)
    joint, *_ = np.histogram2d(x, weights, 3)
    inside = np.isin(np.digitize(x, edges[::-1]), [2, 3, 5])
    return counts, weighed, bounds, joint, inside, np.searchsorted(edges, x, "right")


@program(3 * np.eye(64) + normal(64, 64) / 8, normal(64, seed=1), 1e-29, ulps=4096)
def stabilised_bi_conjugate_gradients(a, b, limit):
    """Solve a x = b; the limit is between the squares of two residuals, far from both."""

    def step(state):
        x, r, p, rho, _, count = state
        v = a @ p
        alpha = rho / (b @ v)
        s = r - alpha * v
        t = a @ s
        omega = (t @ s) / (t @ t)
        r = s - omega * t
        following = b @ r
        x = x + alpha * p + omega * s
        p = r + (following / rho) * (alpha / omega) * (p - omega * v)
        return x, r, p, following, r @ r, count + 1

    squares = b @ b
    start = b * 0, b, b, squares, squares, 0
    x, *_, count = while_loop(lambda state: (state[4] > limit) & (state[5] < 50), step, start)
    return x, count
