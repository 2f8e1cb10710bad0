"""What goes in and comes out: trees, constants, arguments that are results."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tests.corpus.case import program, whole
from tracegraph import while_loop

TABLE = np.arange(12.0).reshape(3, 4)
SHARED = np.array([1, 2, 3, 4])


class Point(NamedTuple):
    x: object
    y: object


@program({"a": whole(3), "b": [whole(2, seed=1), 2.5]}, Point(whole(4), 1))
def trees(tree, point):
    return {
        "sum": tree["a"].sum() + point.y,
        "rest": (tree["b"], Point(point.y, point.x * 2)),
        "no": None,
    }


@program(whole(4))
def closed_over_constants(x):
    return TABLE * x, TABLE[1] + SHARED, x[SHARED - 1], (TABLE @ x).sum()


@program(whole(3), np.arange(4))
def results_that_are_arguments(x, y):
    return x, y, x, x + 1


@program(whole(3), 2)
def duplicated_results(x, n):
    y = x * n
    return y, y, (y.T, y.reshape(3, 1)), n


@program(whole(2, 3))
def constant_results(x):
    return TABLE, 1.5, np.zeros(3), np.arange(3), x.shape[0], True


@program(whole(2, 3))
def views_of_arguments_as_results(x):
    return x.T, x[0], x[:, ::-1], x.reshape(-1), np.broadcast_to(x, (2, 2, 3))


@program(whole(4), whole(4, seed=1))
def unused_arguments_and_dead_work(x, unused):
    _ = np.exp(unused) @ unused
    return x


@program({"v": whole(3), "n": 0})
def tree_as_carry(state):
    def body(s):
        return {"v": s["v"] + TABLE[0, :3], "n": s["n"] + 1}

    return while_loop(lambda s: s["n"] < 3, body, state)
