"""Arrays made inside a function and written to."""

from __future__ import annotations

import numpy as np

import tracegraph
from tests.corpus.case import program, whole


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


@program(whole(3, 4) + 1j * whole(3, 4, seed=1))
def writes_through_parts_of_complex_numbers(z):
    y = z.copy()
    y.imag[1:] = 0
    y.real *= 2
    y.T.imag[0] = y.real[:, 1]
    y.real = y.real[::-1]
    return y, y.imag.sum()


@program(whole(4, 4))
def diagonals_and_memory_order(x):
    y = x.copy()
    across = np.diagonal(y[:, None], axis1=0, axis2=2)
    flat = y.T.ravel("K")
    flat[::2] = 7
    return y, flat, across, y[:, 1:].T.ravel("K")


@program(whole(6), 4)
def a_body_writes_to_its_carry(x, n):
    def body(i, c):
        c[i] = c[i + 1] + 7
        c[::2] += 1
        return c

    y = x * 2
    last = tracegraph.fori_loop(0, n, body, y)
    last[0] = y[0]
    return last, y, tracegraph.fori_loop(0, n, body, x)


@program(whole(6), 1)
def branches_write_to_their_operands(x, p):
    def write(y):
        y[1:4] *= 3
        return y, y[::-1]

    y = x + 1
    kept, reverse = tracegraph.cond(p > 0, write, lambda y: (y, y), y)
    kept[0] = 50
    y[5] = 60
    return y, kept, reverse


@program(whole(6, dtype="f4"), whole(6))
def bits_read_and_written(x, y):
    z = y.copy()
    bits = z.view(np.int64)
    bits[::2] ^= np.int64(-(2**63))
    guess = (0x5F3759DF - ((x + 10).view(np.int32) >> 1)).view(np.float32)
    return z, bits, guess
