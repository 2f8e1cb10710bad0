"""Segmented reductions, traced and jitted, with static and traced indices, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph as tg
from tests.helpers.numpy_agreement import assert_jitted_equals_numpy, expressions
from tests.helpers.ufunc_arguments import DTYPES, UFUNCS, argument

INDICES: dict[str, Any] = {
    "one": [0],
    "ascending": [0, 2, 3],
    "repeated": [1, 1, 4],
    "falling": [4, 0, 3, 1],
    "last": [6],
    "of many lengths": [0, 1, 3, 6, 0, 5, 2],
    "none": np.array([], int),
    "unsigned": np.array([0, 3], np.uint8),
}


EACH_UFUNC = [(u, d) for n, u in enumerate(UFUNCS) for i, d in enumerate(DTYPES, n) if i % 2]
"""Each function with every second dtype."""


@pytest.mark.parametrize(("ufunc", "dtype"), EACH_UFUNC)
def test_reduceat_equals_numpys_in_every_dtype(ufunc: str, dtype: str) -> None:
    indices = {f"i{number}": np.asarray(i) for number, i in enumerate(INDICES.values())}
    static = [f"np.array({i.tolist()}, '{i.dtype}')" for i in indices.values()]
    both = (static, indices) if dtype in ("bool", "int32", "float64") else (indices,)
    for each in both:
        calls = ", ".join(f"np.{ufunc}.reduceat(x, {i})" for i in each)
        assert_jitted_equals_numpy(calls, {"x": argument(dtype, 7, 2), **indices})


@pytest.mark.parametrize(
    "call",
    [
        *expressions("""
            np.add.reduceat(x, [0, 1], axis=1, dtype=np.float32);
            np.add.reduceat(x[0], [0, 2], axis=None); np.hypot.reduceat(x.T, [1, 0], axis=-1);
            np.add.reduceat(x.T, i, axis=-1); np.add.reduceat(x[0], [0, 2], axis=(0,));
            np.add.reduceat(x[0], [True, False]); np.add.reduceat(x[:0], []);
            np.add.reduceat(x, np.zeros(0, np.int8));
            np.multiply.reduceat(np.stack([x, x + 1]), i, axis=2); np.maximum.reduceat(x, i[:1]);
            np.add.reduceat(np.arange(9), x[0].astype(int))
        """),
        # what raises
        *expressions("""
            np.add.reduceat(x[0, 0], [0]); np.add.reduceat(x, [3]); np.add.reduceat(x, [-1]);
            np.add.reduceat(x[:0], [0]); np.add.reduceat(x[:0], i); np.add.reduceat(x, [[0, 1]]);
            np.add.reduceat(x, 1); np.add.reduceat(x, i[None]); np.add.reduceat(x, np.array([0.5]));
            np.add.reduceat(x, np.array([1], np.uint64)); np.add.reduceat(x, x[0]);
            np.add.reduceat(x, [0], axis=2); np.add.reduceat(x, [0], axis=(0, 1));
            np.add.reduceat(x, [0], axis=None); np.bitwise_or.reduceat(x, [0])
        """),
    ],
)
def test_options_and_errors_are_numpys(call: str) -> None:
    values = {"x": np.linspace(0, 5, 12).reshape(3, 4), "i": np.array([0, 2, 1])}
    assert_jitted_equals_numpy(call, values)


def test_many_segments_are_few_equations() -> None:
    """As many groups as lengths have powers of two, whatever the number of segments."""

    def f(x: Any) -> Any:
        return np.add.reduceat(x, starts)

    x = np.arange(4096.0)
    sizes = []
    for count in (64, 1024):
        starts = np.concatenate([np.arange(count), [count + 100, count + 1000]])
        sizes.append(len(tg.make_program(f)(x).body.eqns))
        np.testing.assert_allclose(np.asarray(tg.jit(f, device="host")(x)), f(x), rtol=1e-12)
    assert sizes[0] == sizes[1] < 80


def test_traced_indices_out_of_range_are_clamped() -> None:
    x = np.arange(5.0)
    found = tg.jit(np.add.reduceat, device="host")(x, np.array([-3, 2, 9]))
    np.testing.assert_array_equal(np.asarray(found), [1.0, 5.0, 4.0])


def test_out_and_loops() -> None:
    def f(x: Any, i: Any) -> Any:
        y = np.zeros_like(x[:2])
        np.add.reduceat(x, i, out=y)
        return tg.fori_loop(0, 3, lambda k, y: np.minimum.reduceat(y + k, [0, 1]), y)

    x, i = np.arange(12.0).reshape(4, 3), np.array([1, 2])
    np.testing.assert_array_equal(np.asarray(tg.jit(f, device="host")(x, i)), f(x, i))
