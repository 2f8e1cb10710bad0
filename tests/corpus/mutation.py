"""Arrays made inside a function and written to."""

from __future__ import annotations

import numpy as np

from corpus.case import program, whole


@program(whole(6), whole(3, seed=1))
def assignment_to_slices(x, v):
    y = np.zeros_like(x)
    y[::2] = v
    y[1] = 5
    y[-2:] *= x[:2]
    y[3:5] = y[2:4]
    return y, y.sum()


@program(whole(4, 4))
def writes_through_views(x):
    y = x.copy()
    row, block = y[1], y[2:, 2:]
    row[0] = 100
    block += 1
    before = y.sum()
    y[1] *= 2
    return y, row, block, before


@program(whole(5))
def in_place_operators(x):
    y = x * 1
    y += 1
    y *= x
    y -= y
    z = x + 0
    z /= 4
    z **= 2
    return y, z


@program(whole(6))
def a_value_read_before_it_changes(x):
    y = x + 1
    old = y + 0
    y[:3] = y[3:]
    y[3:] = old[:3]
    return y, old


@program(whole(5, 5))
def loop_of_python_writes(x):
    y = np.zeros_like(x)
    for i in range(5):
        y[i, : i + 1] = x[i, : i + 1]
        y[:, i] += y[i, i]
    return y


@program(whole(4))
def overlapping_write(x):
    y = x.copy()
    y[1:] = y[:-1]
    z = x.copy()
    z[::-1] = z + z[::-1]
    return y, z


@program(whole(3, 4), np.array([0, 2]))
def writes_into_a_fresh_reduction(x, i):
    y = x.sum(axis=0)
    y[i] = -1
    z = x.max(axis=1) * 2
    z[i] += x[0, i]
    return y, z
