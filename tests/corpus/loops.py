"""Single loops and branches."""

from __future__ import annotations

import numpy as np

from tests.corpus.case import positive, program, whole
from tracegraph import cond, fori_loop, map, scan, switch, while_loop

for _trips in (0, 1, 5):

    @program(whole(4), _trips, name=f"while_{_trips}_trips")
    def counted(x, n):
        return while_loop(lambda c: c[1] < n, lambda c: (c[0] * 2 + x, c[1] + 1), (x, 0))


for _flag in (True, False):

    @program(_flag, whole(5), whole(5, seed=1), name=f"cond_{_flag}".lower())
    def branches(p, x, y):
        chosen = cond(p, lambda: (x + y, x.sum(), 1.5), lambda: (x * y, y.max(), 2.0))
        return chosen, cond(p, lambda x: x, lambda x: -x, y)


for _index in (-3, 0, 1, 2, 9):

    @program(_index, whole(3), name=f"switch_on_{_index}".replace("-", "minus_"))
    def switched(i, x):
        return switch(i, [lambda x: x + 1, lambda x: x * x, lambda x: np.flip(x)], x)


@program(whole(6), True)
def branches_return_captures_and_constants(x, p):
    doubled = x * 2
    return cond(p, lambda: (doubled, 1, x), lambda: (x, 0, np.zeros(6))), cond(
        np.logical_not(p), lambda: doubled, lambda: np.arange(6.0)
    )


@program(whole(7), 0, 6)
def fori_with_bounds_from_the_device(x, low, high):
    return fori_loop(low, high, lambda i, c: c + x[i] * i, 0.0), fori_loop(
        high, low, lambda i, c: c, x
    )


@program(whole(5), whole(5, seed=1), 4)
def swapped_carries(x, y, n):
    return fori_loop(0, n + 1, lambda i, c: (c[1], c[0] + c[1]), (x, y))


@program(whole(5), whole(5, seed=1), whole(5, seed=2), 4)
def rotated_duplicated_and_kept_carries(x, y, z, n):
    def body(i, c):
        a, b, third, kept, _ = c
        return b, third, a, kept, a

    return fori_loop(0, n, body, (x, y, z, x + y, x))


@program(whole(6), 5)
def stencil_carry(x, n):
    return fori_loop(0, n, lambda i, c: np.roll(c, 1) - np.roll(c, -1) + c[::-1], x)


for _steps in (9, 40, 41):

    @program(whole(6), name=f"stencil_of_{_steps}_steps")
    def known_stencil(x, steps=_steps):
        return fori_loop(0, steps, lambda i, c: (np.roll(c, 1) + c[::-1]) % 7, x)


@program(whole(6), 5)
def chain_of_carries(x, n):
    def body(i, c):
        old, now, kept = c
        return now, (np.roll(now, 1) + old[::-1] + i) % 7, kept

    return fori_loop(0, 40, body, (x, x + 1, x)), fori_loop(0, n, body, (x, x + 1, x))


@program(whole(3, 3), 4)
def carry_read_by_a_transpose(x, n):
    return fori_loop(0, n, lambda i, c: np.sign(c.T) + x, x)


@program(whole(6), 4)
def carry_read_by_a_reduction(x, n):
    return fori_loop(0, n, lambda i, c: (c - c.max()) % 7, x)


@program(whole(8), 6)
def carry_written_in_place(x, n):
    def body(i, y):
        y = y.copy()
        y[i] = y[i - 1] + i
        return y

    return fori_loop(0, n, body, x)


@program(whole(8), 3)
def carry_and_what_depends_on_the_old_one(x, n):
    def body(i, c):
        y, history, _ = c
        history = history.copy()
        new = y * 2 % 11
        history[i] = y.sum()
        return new, history, y

    return fori_loop(0, n, body, (x, np.zeros(5), x))


@program(whole(5, 3), whole(3, seed=1))
def scan_with_stacked_outputs(xs, init):
    return scan(lambda c, x: (c + x, (c * x, x.sum())), init, xs)


@program(whole(5, 3), whole(3, seed=1))
def scan_backwards(xs, init):
    return scan(lambda c, x: (c - x, c), init, xs, reverse=True)


@program(whole(0, 3), whole(3, seed=1))
def scan_of_nothing(xs, init):
    return scan(lambda c, x: (c + x, c * 2), init, xs)


@program(whole(4))
def scan_over_a_count(x):
    return scan(lambda c, _: (c * 2, c.sum()), x, None, length=3)


@program(whole(6, 2), whole(6, seed=1))
def scan_over_a_tree(xs, ys):
    def body(c, pair):
        x, y = pair["x"], pair["y"]
        return (c[0] + y, c[1] * x), {"row": x * y, "c": c[0]}

    return scan(body, (0.0, np.ones(2)), {"x": xs, "y": ys}, unroll=2)


@program(whole(4, 3))
def mapped(xs):
    return map(lambda x: (x.sum(), np.cumsum(x)), xs)


@program(whole(4, 4, low=0), whole(4, seed=1), 3)
def product_in_a_body(a, x, n):
    return fori_loop(0, n, lambda i, c: (a @ c) % 5, x)


@program(2.0)
def newton(a):
    def step(c):
        x, _, k = c
        y = 0.5 * (x + a / x)
        return y, np.abs(y - x), k + 1

    return while_loop(lambda c: (c[1] > 1e-9) & (c[2] < 50), step, (a, a, 0))


@program(np.arange(5), 3)
def integer_carries_bend(x, n):
    return while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] + 1.5, c[2] + x), (0, 0, x))


@program(whole(300), 100.0)
def condition_from_a_reduction(x, limit):
    return while_loop(lambda y: np.abs(y).sum() < limit * 300, lambda y: y * 2 + 1, x)


@program(whole(4))
def both_carries_start_as_one_array(x):
    return fori_loop(0, 3, lambda i, c: (c[0] + 1, c[1] * 2), (x, x))


@program(whole(3, 3))
def products_replace_their_operand(a):
    return (
        fori_loop(0, 3, lambda i, c: (a @ c) % 7, a),
        fori_loop(0, 3, lambda i, c: (c @ c) % 7, a),
        fori_loop(0, 2, lambda i, c: c @ a, a),
    )


@program(whole(5, dtype="f2"), whole(5, dtype="c16") * 1j, whole(5, dtype="bool"))
def carries_of_other_dtypes(half, z, p):
    return (
        fori_loop(0, 3, lambda i, c: c * 2 + half, half),
        scan(lambda c, v: (c + v, c), 0j, z),
        fori_loop(0, 3, lambda i, c: ~c | p, p),
    )


@program(whole(5, 5))
def rows_and_columns_written_in_turn(x):
    def body(i, c):
        c = c.copy()
        c[i] = c[:, i]
        c[:, 0] -= i
        return c

    return fori_loop(0, 5, body, x)


@program(whole(200, 200))
def large_carry_read_across(x):
    return fori_loop(0, 3, lambda i, c: (c.T - c.sum(axis=0)) % 5, x)


@program(whole(4), np.int8(3))
def narrow_bounds(x, n):
    return fori_loop(np.int8(0), n, lambda i, c: c + i, x), switch(n, [lambda: x, lambda: x * 2])


@program(positive(60, 3), ulps=64)
def clusters(x):
    def body(_, centres):
        nearest = ((x[:, None] - centres) ** 2).sum(axis=-1).argmin(axis=1)
        member = (nearest[:, None] == np.arange(4)).astype("f8")
        return (member.T @ x) / np.maximum(member.sum(axis=0), 1)[:, None]

    return fori_loop(0, 3, body, x[:4])


@program(whole(700), 3)
def passes_over_a_row_that_replace_what_they_read(x, n):
    def step(state):
        x, s, k = state
        y = (x + x.sum() % 7) % 11
        norm = (y * y).sum()
        return (y - (norm + s) % 5) % 9, norm % 13, k + 1

    return while_loop(lambda state: state[2] < n, step, (x, 0.0, 0))


@program(whole(40, 33), 3)
def passes_over_columns_and_rows(x, n):
    def step(i, x):
        centred = (x - x.max(axis=0)) % 11
        spread = (centred * centred).sum(axis=0) % 7
        return (centred + spread) % 5 + (x.min(axis=1, keepdims=True) + i) % 3

    return fori_loop(0, n, step, x)
