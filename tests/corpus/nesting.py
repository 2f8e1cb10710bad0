"""Loops and branches inside each other, in every combination."""

from __future__ import annotations

import numpy as np

from tests.corpus.case import program, whole
from tracegraph import cond, fori_loop, scan, switch, while_loop

INDEX = np.asarray(1)


def in_while(f):
    return lambda x: while_loop(lambda c: c[1] < 2, lambda c: (f(c[0]), c[1] + 1), (x, 0))[0]


def in_cond(f):
    return lambda x: cond(x[0] > -100, lambda x: f(x) + 1, lambda x: f(-x), x)


def in_switch(f):
    return lambda x: switch(x.sum().astype("i8") % 3, [f, lambda x: f(x) * 2, lambda x: x], x)


def in_fori(f):
    return lambda x: fori_loop(0, 2, lambda i, c: f(c) - i, x)


def in_scan(f):
    def run(x):
        carry, ys = scan(lambda c, row: (f(c), c + row), x, np.stack([x, -x]))
        return (carry + ys.sum(axis=0)) % 13

    return run


def leaf(x):
    return (x * 3 + np.roll(x, 1)) % 17


CONSTRUCTS = {
    "while": in_while,
    "cond": in_cond,
    "switch": in_switch,
    "fori": in_fori,
    "scan": in_scan,
}

for _outer, _wrap in CONSTRUCTS.items():
    for _inner, _wrapped in CONSTRUCTS.items():
        program(whole(4), name=f"{_inner}_in_{_outer}")(_wrap(_wrapped(leaf)))


@program(whole(4), 3)
def captures_at_depth_three(x, n):
    a = x * 2

    def outer(i, y):
        b = a + i

        def middle(c):
            z, k = c
            d = b * k

            def inner(j, w):
                return (w + a + b + d + x[j]) % 101

            return cond(k > 0, lambda: fori_loop(0, 2, inner, z), lambda: z + d), k + 1

        return while_loop(lambda c: c[1] < 2, middle, (y, 0))[0]

    return fori_loop(0, n, outer, x)


@program(np.array([2, 0, 3]), 0)
def inner_bound_from_device_memory(bounds, start):
    def outer(i, total):
        return fori_loop(start, bounds[i], lambda j, t: t * 2 + j, total + 1)

    return fori_loop(0, 3, outer, 0)


@program(whole(5), 4)
def outer_carry_unchanged_by_an_inner_loop(x, n):
    def outer(i, c):
        y, z = c
        z = fori_loop(0, i, lambda j, z: z + y[j], z)
        return y, z % 31

    return fori_loop(0, n, outer, (x, x * 0))


@program(whole(3, 3), whole(3, seed=1), True)
def products_in_nested_bodies(a, x, p):
    def body(i, c):
        return cond(i % 2 == 0, lambda: a @ c, lambda: c @ a) % 7

    return cond(p, lambda: fori_loop(0, 3, body, x), lambda: x)


@program(whole(4), 3)
def a_value_computed_outside_and_changed_inside(x, n):
    base = np.cumsum(x)

    def body(i, c):
        y, b = c
        return y + b, cond(i == 1, lambda: base * 2, lambda: b)

    return fori_loop(0, n, body, (x, base)), base


@program(whole(3), 0)
def loops_that_never_run(x, n):
    def outer(i, y):
        return fori_loop(0, n, lambda j, z: z * 100, y + 1)

    return (
        fori_loop(0, 2, outer, x),
        fori_loop(0, n, outer, x),
        scan(lambda c, _: (c, c), x, length=0),
    )


@program(whole(4), 2)
def loops_one_after_the_other(x, n):
    first = fori_loop(0, n, lambda i, y: y + x, x)
    second = fori_loop(0, n, lambda i, y: y * 2 - first[i], x)
    return first - second, cond(first.sum() > second.sum(), lambda: first, lambda: second)


@program(whole(3, 4))
def scan_of_scans(xs):
    def row(total, x):
        end, sums = scan(lambda c, v: (c + v, c), 0.0, x)
        return total + end, np.flip(sums) + total

    return scan(row, 0.0, xs)


@program(whole(6), 5)
def collatz_like(x, n):
    def step(v):
        return np.where(v % 2 == 0, v // 2, 3 * v + 1)

    def body(c):
        v, k = c
        return switch(k % 3, [step, lambda v: step(step(v)), lambda v: v + 1], v), k + 1

    return while_loop(lambda c: (c[1] < n) & (c[0].max() < 1000), body, (np.abs(x) + 1, 0))


@program(whole(5), 3)
def swap_in_an_inner_loop(x, n):
    def outer(i, c):
        a, b = fori_loop(0, i + 1, lambda j, c: (c[1], c[0] + j), c)
        return b, a

    return fori_loop(0, n, outer, (x, x + 1))


@program(whole(4), True)
def branch_updates_one_of_two(x, p):
    def body(i, c):
        a, b = c
        return cond(i % 2 == 0, lambda a, b: (a + b, b), lambda a, b: (a, b - a), a, b)

    return fori_loop(0, 4, body, (x, x[::-1]))


@program(whole(4), 3)
def branches_permute_carries(x, n):
    def swap(a, b):
        return b, a

    def chosen(i, c):
        return switch(i, [swap, lambda a, b: (a, a), lambda a, b: (np.roll(b, 1), b)], *c)

    def either(i, c):
        a, b = cond(i % 2 == 0, swap, lambda a, b: (a + 1, b[::-1]), *c)
        return b, a

    return fori_loop(0, n, chosen, (x, x + 1)), fori_loop(0, n, either, (x, x * 2))
