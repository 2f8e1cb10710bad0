"""Programs that call Python: arrays of all dtypes, large ones, in loops, conditions and lanes."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.devices import Device
from tracegraph import ArrayType, cond, debug, fori_loop, pure_callback, scan, tree
from tracegraph.dtypes import SHORT_NAMES

DTYPES = tuple(SHORT_NAMES)

CALLS: list[Any] = []


def log(*args: Any, **kwargs: Any) -> None:
    CALLS.append((args, kwargs))


def like(x: Any) -> ArrayType:
    return ArrayType(np.dtype(x.dtype), x.shape)


def send_all(*arrays: Any) -> Any:
    for array in arrays:
        debug.callback(log, array, array[2], x=array[::-1])
    return arrays[0]


def answer_all(*arrays: Any) -> Any:
    def swap(x: Any, y: Any) -> Any:
        return y[::-1], x

    return [pure_callback(swap, (like(a), like(a[0])), a[1], a) for a in arrays]


def send_large(x: Any, small: Any) -> Any:
    debug.callback(log, x * 2, small, x[:0], x[:5000].T, x > 3)
    return x


def answer_large(x: Any) -> Any:
    return pure_callback(lambda x: (x + 1, x[:1]), (like(x), like(x[:1])), x)


def nested(x: Any) -> Any:
    def row(i: Any, total: Any) -> Any:
        def inner(j: Any, total: Any) -> Any:
            debug.callback(log, i, j, total=total)
            return total + pure_callback(lambda x, j: x[j], like(x[0]), x, j)

        total = tracegraph.fori_loop(0, i, inner, total)
        return tracegraph.cond(
            i % 2 == 0,
            lambda: (debug.callback(log, total, i), total + 1)[1],
            lambda: (debug.callback(log, total), pure_callback(np.negative, like(total), total))[1],
        )

    result = tracegraph.fori_loop(0, 4, row, np.float64(0.5))
    debug.callback(log, result)
    return result


def conditions(x: Any) -> Any:
    def goes_on(x: Any) -> Any:
        return pure_callback(lambda x: x.sum() < 40, ArrayType(np.dtype(bool)), x)

    return tracegraph.while_loop(goes_on, lambda x: x + 1.5, x)


def often(x: Any) -> Any:
    def step(i: Any, x: Any) -> Any:
        debug.callback(log, i, x)
        return pure_callback(lambda x: x + 1, like(x), x)

    return tracegraph.fori_loop(0, 60, step, x)


def lanes(x: Any) -> Any:
    def lane(x: Any) -> Any:
        def small() -> Any:
            debug.callback(log, x)
            return pure_callback(np.cos, like(x), x, vmap_method="sequential")

        return tracegraph.cond(x < 4, small, lambda: x)

    return tracegraph.vmap(lane)(x)


def everywhere(x: Any) -> Any:
    debug.callback(log, x.sum())

    def step(i: Any, v: Any) -> Any:
        debug.callback(log, i)

        def even() -> Any:
            debug.callback(log, i, even=v)
            return pure_callback(np.negative, like(v), v)

        v = cond(i % 2 == 0, even, lambda: v * 2.0)

        def inner(carry: Any, row: Any) -> Any:
            debug.callback(log, row, i)
            return pure_callback(np.add, like(row), carry, row), row

        return v + scan(inner, 0.0, v, reverse=True)[0]

    y = fori_loop(0, 5, step, x)
    debug.callback(log, y)
    return y


ARRAYS = tuple(np.array([1, 0, 3], dtype) for dtype in DTYPES)
LARGE = np.random.default_rng(0).normal(size=70_001)  # many frames, more than the ring has

PROGRAMS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "send all": (send_all, ARRAYS),
    "answer all": (answer_all, ARRAYS),
    "send large": (send_large, (LARGE, np.arange(3, dtype=np.int8))),
    "answer large": (answer_large, (LARGE,)),
    "everywhere": (everywhere, (np.arange(3.0),)),
    "nested": (nested, (np.arange(4.0),)),
    "conditions": (conditions, (np.arange(3.0),)),
    "often": (often, (np.arange(1000.0),)),
    "lanes": (lanes, (np.arange(6.0),)),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("order", [None, Random(0), Random(1)])
def test_calls_and_answers_are_those_of_the_eager_run(
    name: str, order: Random | None, device: Device
) -> None:
    function, arguments = PROGRAMS[name]
    CALLS.clear()
    expected = function(*arguments)
    wanted = [*CALLS]
    CALLS.clear()
    result = device.run(name, *arguments, order=order)
    wanted *= device.times
    assert tree.structure(CALLS) == tree.structure(wanted)
    for got, known in zip(tree.leaves(CALLS), tree.leaves(wanted), strict=True):
        assert got.dtype == known.dtype
        np.testing.assert_array_equal(got, known)
    tree.map(np.testing.assert_array_equal, result, expected)
