"""Chains of sorts and running sums beside loops and branches that they do not depend on.

Their buffers share the arena with those of the loop, whose flags and rotating carries included.
"""

from __future__ import annotations

import numpy as np

from tests.corpus.case import program, whole
from tracegraph import cond, fori_loop, scan, switch, while_loop


def first_half(p):
    steps = np.diff(p, append=0)
    return np.cumsum(np.cumsum(steps[np.argsort(steps, kind="stable")]))


def second_half(c):
    c = c - c.max()
    c = np.cumsum(c[np.argsort(c, kind="stable")])
    return c[::-1] * 2 - np.sort(c)


def beside(construct):
    """A function of both that runs the construct in the middle of the chain."""

    def run(p, *arguments):
        c = first_half(p)
        found = construct(*arguments)
        return found, second_half(c)

    return run


def sort_in_a_while_loop(v):
    return while_loop(lambda v: v.max() < 1000, lambda v: np.sort(v)[::-1] * 2 + 1, v)


def loop_that_rotates_carries(v, n):
    def body(state):
        a, b, c, k = state
        return b[::-1], np.cumsum(c) % 11, np.roll(a, 1) + 1, k + 1

    return while_loop(lambda s: s[3] < n, body, (v, v * 2, v - 1, 0))


def nested_loops(v, n):
    def inner(c):
        return while_loop(lambda c: c[1] < 3, lambda c: (np.sort(c[0] * 3 % 17), c[1] + 1), (c, 0))

    return fori_loop(0, n, lambda i, c: np.cumsum(inner(c)[0][::-1]) % 13 + i, v)


def a_scan_of_sorts(v, n):
    def step(c, row):
        c = np.cumsum(c + np.sort(row)) % 19
        return c, c[::-1] * n

    return scan(step, v, np.stack([v, v[::-1], v * 2, -v, v + n]))


def a_branch_with_sorts(v, n):
    def long(v):
        return np.cumsum(np.cumsum(np.sort(v))[::-1]) % 23

    return cond(v.sum() > n, long, lambda v: np.sort(np.cumsum(v))[::-1] + 1, v)


def a_switch_with_loops(v, n):
    def turned(v):
        return fori_loop(0, n, lambda i, c: (np.roll(c[1], 1), np.cumsum(c[0]) % 7), (v, v + 1))[0]

    return switch(n % 3, [sort_in_a_while_loop, turned, np.sort], v)


def two_loops_beside_each_other(v, n):
    other = while_loop(lambda c: c[1] < n, lambda c: (np.cumsum(c[0]) % 9, c[1] + 1), (v, 0))
    return sort_in_a_while_loop(v), other


CONSTRUCTS = {
    sort_in_a_while_loop: (),
    loop_that_rotates_carries: (5,),
    nested_loops: (3,),
    a_scan_of_sorts: (2,),
    a_branch_with_sorts: (4,),
    a_switch_with_loops: (7,),
    two_loops_beside_each_other: (4,),
}

for _construct, _arguments in CONSTRUCTS.items():
    _named = program(whole(300), whole(500, seed=1), *_arguments, name=_construct.__name__)
    _named(beside(_construct))
