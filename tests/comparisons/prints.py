"""Programs that print: arrays of all dtypes, views, in loops and branches, and often."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO
from random import Random
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.devices import Device
from tracegraph import cond, debug, fori_loop, scan, switch
from tracegraph.dtypes import SHORT_NAMES

DTYPES = tuple(SHORT_NAMES)


def show_all(*arrays: Any) -> Any:
    for array in arrays:
        debug.print("{} {} {x}", array, array[2], x=array[::-1])
    return arrays[0]


def show_views(x: Any) -> Any:
    debug.print("{} and {}", x.T * 2, x[:, 1:])
    debug.print("no arguments")
    debug.print("{}", x[:0])
    return x


def show_nested(x: Any) -> Any:
    def row(i: Any, total: Any) -> Any:
        def inner(j: Any, total: Any) -> Any:
            debug.print("{} {} {total}", i, j, total=total)
            return total + x[j]

        total = tracegraph.fori_loop(0, i, inner, total)
        return tracegraph.cond(
            i % 2 == 0,
            lambda: (debug.print("even {}", total), total)[1],
            lambda: (debug.print("odd"), total * 2)[1],
        )

    result = tracegraph.fori_loop(0, 4, row, 0.0)
    debug.print("done {}", result)
    return result


def show_often(x: Any) -> Any:
    def step(i: Any, x: Any) -> Any:
        debug.print("{} {}", i, x)
        return x + 1

    return tracegraph.fori_loop(0, 60, step, x)


def show_everywhere(x: Any) -> Any:
    debug.print("start {total:.2f}", total=x.sum())

    def step(i: Any, v: Any) -> Any:
        debug.print("step {}", i)
        v = cond(i % 2 == 0, lambda: (debug.print("even {}", v), v + 1.0)[1], lambda: v * 2.0)

        def inner(carry: Any, row: Any) -> Any:
            debug.print("row {} of {}", row, i)
            return carry + row, row

        total, _ = scan(inner, 0.0, v, reverse=True)
        switch(i, [lambda: None, lambda: debug.print("one {}", total)])
        return v

    y = fori_loop(0, 5, step, x)
    debug.print("end {}", y)
    return y


PROGRAMS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "dtypes": (show_all, tuple(np.array([1, 0, 3], dtype) for dtype in DTYPES)),
    "views": (show_views, (np.arange(12.0).reshape(3, 4),)),
    "nested": (show_nested, (np.arange(4.0),)),
    "everywhere": (show_everywhere, (np.arange(3.0),)),
    "often": (show_often, (np.arange(100.0),)),  # passes the end of a small ring many times
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("order", [None, Random(0), Random(1)])
def test_prints_are_those_of_the_eager_run(name: str, order: Random | None, device: Device) -> None:
    function, arguments = PROGRAMS[name]
    with redirect_stdout(StringIO()) as wanted:
        expected = function(*arguments)
    with redirect_stdout(StringIO()) as printed:
        result = device.run(name, *arguments, order=order)
    assert printed.getvalue() == wanted.getvalue() * device.times
    np.testing.assert_array_equal(result, expected)
