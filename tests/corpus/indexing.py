"""Gathers and scatters."""

from __future__ import annotations

import numpy as np

import tracegraph
from tests.corpus.case import program, whole


@program(whole(6, 4), np.array([0, -1, 3, 3]), np.array([[1, 2], [-2, 0]]))
def gathers(x, i, j):
    return x[i], x[:, j], x[i[:2], j], x[j, 1:3], x[i, None, 0], np.take(x, i, axis=1)


@program(whole(5, 3), 2)
def dynamic_position(x, i):
    return x[i], x[i - 4], x[:, i], x[i, i - 1] * 2


@program(whole(6, 4), np.array([4, 1, 1, -6]))
def fused_gather(x, i):
    return (x * 2 + 1)[i].sum(axis=1), np.exp2(x[i] / 8).shape[0] + x[i][::-1], x[i][i % 4]


@program(whole(8), np.array([1, 3, 1, -1, 1]), whole(5, seed=1))
def scatter_with_duplicates(x, i, v):
    y = x.copy()
    y[i] = v
    return y


@program(whole(8), np.array([1, 3, 1, -1, 1]), whole(5, seed=1))
def duplicates_count_once_in_place(x, i, v):
    y = x.copy()
    y[i] += v
    return y


@program(whole(8), np.array([1, 3, 1, -1, 1, 9]), whole(6, seed=1))
def combining_duplicates_between_readers(x, i, v):
    before = x * 2
    added = x.copy()
    np.add.at(added, i[:5], v[:5])
    least = added.copy()
    np.minimum.at(least, i[:5], added[i[:5]] - v[:5])
    return before + added[::-1], least * 2 + added, before


@program(whole(8), np.array([1, 3, 1, -1, 1]), whole(5, seed=1, dtype=np.int8))
def combining_duplicates_in_a_loop(x, i, v):
    def step(k, carry):
        total, narrow = carry
        np.add.at(total, (i + k) % 8, v * total[i])
        np.maximum.at(total, i, v)
        np.multiply.at(narrow, i, v)
        return total, narrow

    start = x.copy(), np.ones_like(v, shape=8)
    return tracegraph.fori_loop(0, 5, step, start)


@program(whole(5, 3), np.array([[4, 0], [0, 4]]), whole(2, 2, 3, seed=1))
def scatter_of_rows(x, i, v):
    y = x * 2
    y[i] = v
    y[i[0], 1] = 7
    return y, y[i]


@program(whole(10), whole(10, dtype="bool", seed=1))
def masks(x, p):
    y = x + 0
    y[p] = -1
    return y, np.where(p, y, x * 3), np.sum(x, where=p)


@program(whole(4, 6))
def static_mask_and_index(x):
    return x[:, np.array([True, False, True, True, False, False])], x[[0, 2]], x[[3, 0], [1, 5]]


@program(whole(7, dtype="i8", low=0), whole(7, seed=1))
def permutation_round_trip(keys, x):
    order = np.argsort(np.arange(7) * 3 % 7)
    y = np.zeros_like(x)
    y[order] = x[order]
    counts = np.zeros_like(keys, shape=10)
    for k in range(7):
        counts[keys[k]] += 1
    return y, counts


@program(whole(3, 4, 5), np.array([2, 0]), np.array([1, 1]))
def index_arrays_apart(x, i, j):
    return x[i, :, j], x[i, 1:3, j], x[:, i, j], x[i, j], x[..., j]


@program(whole(4, 4), np.array([0, 2]))
def take_along_and_set(x, i):
    y = x.copy()
    y[i, i] = 0
    y[:, i] += 1
    return y, np.take_along_axis(x, np.argmax(x, axis=1)[:, None], axis=1)


@program(whole(8))
def scatters_and_gathers_in_a_row(x):
    i = np.abs(x).astype("i8") % 8
    y = np.zeros_like(x)
    y[i] = x
    z = y * 2
    z[i[::-1]] += y[i]
    return y, z, z[i]
