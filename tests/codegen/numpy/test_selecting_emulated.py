"""Functions that find, count, place and repeat elements, as generated CUDA C++ run on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from tests.helpers.agreement import assert_agrees
from tests.helpers.devices import Device
from tracegraph import tree

RANDOM = np.random.default_rng(0)
X = RANDOM.integers(-3, 4, (9, 70)).astype(np.float32)
MASK = X > 1
I = RANDOM.integers(0, 9, 70)


def written(write: Callable[..., Any]) -> Callable[..., Any]:
    def function(x: Any, *args: Any) -> Any:
        y = x.copy()
        write(y, *args)
        return [y]

    return function


def compacted_in_a_loop(x: Any) -> Any:
    """The positions of the elements above a bound that grows."""

    def step(k: Any, total: Any) -> Any:
        return total + tnp.flatnonzero(x > k - 3, size=50, fill_value=-1)

    return [tracegraph.fori_loop(0, 5, step, np.zeros_like(x, int, shape=50))]


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "nonzero": (lambda x: list(tnp.nonzero(x, size=400, fill_value=-1)), (X,)),
    "nonzero_more": (lambda x: list(tnp.nonzero(x, size=700, fill_value=(7, 8))), (X,)),
    "compress": (lambda m, x: [tnp.compress(m, x, 1, size=30, fill_value=9)], (MASK[0], X)),
    "extract": (lambda m, x: [tnp.extract(m, x, size=100)], (MASK, X)),
    "in_a_loop": (compacted_in_a_loop, (X,)),
    "place": (written(lambda y, m, v: np.place(y, m, v)), (X, MASK, X[0, :11])),
    "putmask": (written(lambda y, m, v: np.putmask(y, m, v)), (X, MASK, X[0, :11])),
    "put": (written(lambda y, i, v: np.put(y, i * 7, v)), (X, I, np.arange(70, dtype=np.float32))),
    "along": (
        written(lambda y, i, v: np.put_along_axis(y, i[None], v, 0)),
        (X, I, np.float32(50)),
    ),
    "mask": (written(lambda y, m: y.__setitem__((0, m), 5)), (X, MASK[0])),
    "repeat": (lambda x, n: [tnp.repeat(x, n, 1, total_repeat_length=90)], (X, I % 3)),
    "bincount": (lambda i: [np.bincount(i, minlength=9), tnp.bincount(i - 2, length=5)], (I,)),
    "weighted": (lambda i, w: [np.bincount(i, w, 9)], (I, X[0])),
    "insert": (lambda x, v: [np.insert(x, [1, 4], v, axis=0), np.delete(x, [0, 3], 1)], (X, X[:2])),
    "choose": (lambda i, x: [np.choose(i, x), np.unravel_index(i, (3, 3))[1]], (I, X)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_give_what_the_host_gives(name: str, device: Device) -> None:
    function, arguments = PROGRAMS[name]
    expected = tree.map(np.asarray, tracegraph.jit(function, device="host")(*arguments))
    for order in (None, Random(1), Random(2)):
        for got, wanted in zip(device.run(name, *arguments, order=order), expected, strict=True):
            assert_agrees(got, wanted, 2)
