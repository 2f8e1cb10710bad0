"""Reads and writes at a traced mask."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

import tracegraph
from tests.corpus.case import positive, program, whole


@program(whole(5, 6))
def updates_at_a_mask(x):
    v = x.copy()
    m = v > 2
    v[m] += 1
    v[m] = -v[m] * x[m]
    v[~m] -= 3
    v[v[:, 0] > 0, 1] *= -1
    v[:, v[0] > 1] += v[0, 0]
    return v, v[m].sum(), v[m].max(initial=-99), (v[m] > 0).any()


@program(whole(4, 6, 3))
def a_mask_of_fewer_axes_and_views(x):
    v = x.copy()
    m = np.sum(v, axis=2) > 0
    v[m] = v[m][:, ::-1] - x[m].min(axis=1)[:, None]
    v[1:][m[1:], 0] = 7
    v.T[0][m.T] *= 2
    row = v[0, 0]
    row[row > 2] = 0
    return v, row, v[m].sum(axis=0)


@program(whole(7, dtype="i4"), 5)
def masks_in_loops_and_branches(x, n):
    outer = x > 0

    def step(i, v):
        m = v > i
        v[m] = v[m] - 1
        v[outer] += x[outer]
        return v

    def raised(t):
        t[v > 0] += 2
        return t

    def doubled(w):
        w[w > 1] = w[w > 1] * 2
        return w

    v = tracegraph.fori_loop(0, n, step, x)
    total = tracegraph.while_loop(lambda t: t[v > 0].sum() < 40, raised, v)
    return v, tracegraph.cond(n > 3, doubled, lambda w: w, total)


@program(whole(40), whole(40, dtype="i8", low=0))
def indices_at_a_mask(x, k):
    m = x > 0
    counts, last = np.zeros_like(k, shape=10), np.zeros_like(x, shape=10)
    np.add.at(counts, k[m], 1)
    last[k[m]] = x[m]
    v = x.copy()
    v[m] = last[k[m]]
    return counts, last, v


@program(whole(6), True, False)
def conditions_as_indices(x, yes, no):
    v = x.copy()
    v[yes] += 1
    v[no] = 9
    v[yes, 2] = 5
    return v, x.copy()[True], v[False], v[yes].sum() + v[no].sum()


@program(positive(20), positive(20, seed=1), ulps=4)
def azimuthal_mean(data, radius):
    edges = np.linspace(0, 2, 4)
    means = []
    for low, high in pairwise(edges):
        inside = np.logical_and(low <= radius, radius < high)
        means.append(data[inside].mean())
    return np.stack(means)


@program(positive(5), ulps=8)
def inverse_cubes(x):
    r = (x[:, None] - x) ** 2
    r[r > 0] = r[r > 0] ** -1.5
    return r


@program(positive(4) + 1j, ulps=4)
def escaping(c):
    z = c * 0
    for _ in range(4):
        inside = np.abs(z) <= 2
        z[inside] = z[inside] ** 2 + c[inside]
    return z
