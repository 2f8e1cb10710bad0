"""The methods of ufuncs, traced and jitted, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph as tg
from tests.helpers.numpy_agreement import assert_jitted_equals_numpy, expressions
from tests.helpers.ufunc_arguments import DTYPES, UFUNCS, argument

EACH_UFUNC = [(u, d) for n, u in enumerate(UFUNCS) for i, d in enumerate(DTYPES, n) if i % 2 == 0]
"""Each function with every second dtype; the others are those of `test_reduceat`."""


@pytest.mark.parametrize(("ufunc", "dtype"), EACH_UFUNC)
def test_folds_equal_numpys_in_every_dtype(ufunc: str, dtype: str) -> None:
    x = argument(dtype, 3, 5)
    arguments = {"x": x, "m": argument("bool", 3, 5)}
    for call in (
        *expressions("""
        reduce(x); reduce(x, axis=1, keepdims=True); reduce(x, axis=None); reduce(x[:1]);
        reduce(x, axis=(), keepdims=True); reduce(x[:, :0], axis=1); reduce(x[:0], axis=1);
        reduce(x[0, 0]); reduce(x, 1, initial=x[0, 0]); reduce(x, 1, where=m);
        reduce(x, 1, where=m, initial=x[0, 1]); reduce(x[:, :0], axis=1, initial=x[0, 1]);
        accumulate(x); accumulate(x, axis=-1); accumulate(x[:0]); accumulate(x[:1]);
        accumulate(x[0, 0]); accumulate(x, axis=None); outer(x[0], x[:2]); outer(x[0, 0], x[1])
        """),
    ):
        if "initial" in call and dtype in ("complex64", "float16", "float32", "float64"):
            call = call.replace("x[0, 0]", "x.dtype.type(2)").replace("x[0, 1]", "x.dtype.type(2)")
        assert_jitted_equals_numpy(f"np.{ufunc}.{call}", arguments)


@pytest.mark.parametrize(
    "call",
    [
        *expressions("""
        np.add.reduce(i, dtype=np.int8); np.hypot.reduce(i, dtype=np.float32);
        np.bitwise_or.reduce(i, dtype=np.float32); np.logical_and.reduce(x, dtype=bool);
        np.maximum.accumulate(i, dtype=np.float32);
        np.multiply.accumulate(x, 1, dtype=np.complex64); np.gcd.reduce(i, axis=2);
        np.add.outer(x, i, dtype=np.float32); np.divmod.outer(x[0], x[1]);
        np.less.outer(i[0], x[0]); np.frexp(x)[1] + xp.ldexp(x, i); np.ldexp(x, 3);
        np.ldexp(x.astype(np.float16), i); np.ldexp(i, i); np.ldexp(x, x);
        np.add.reduce(x, initial=None); np.add.reduce(x[:0], initial=None)
        """),
    ],
)
def test_options_are_numpys(call: str) -> None:
    values = {"x": np.linspace(-3, 5, 12).reshape(3, 4), "i": np.arange(-5, 7).reshape(3, 4)}
    assert_jitted_equals_numpy(call, values)


def test_out_is_written_to() -> None:
    def f(x: Any) -> Any:
        y = np.zeros_like(x)
        np.minimum.accumulate(x, out=y)
        np.fmax.reduce(x, axis=0, out=y[0])
        return y

    x = argument("float64", 4, 3)
    np.testing.assert_array_equal(np.asarray(tg.jit(f, device="host")(x)), f(x))


@pytest.mark.parametrize("ufunc", ["maximum", "gcd", "hypot", "logaddexp", "logical_xor"])
def test_scans_and_reductions_work_in_loops(ufunc: str) -> None:
    method = getattr(np, ufunc)
    x = np.arange(1, 13).reshape(3, 4)
    x = x if ufunc == "gcd" else x / 3

    def f(x: Any) -> Any:
        def step(i: Any, y: Any) -> Any:
            return (method.accumulate(y, axis=1) + method.reduce(y, axis=0)).astype(y.dtype)

        return tg.fori_loop(0, 3, step, x)

    np.testing.assert_allclose(np.asarray(tg.jit(f, device="host")(x)), f(x), rtol=1e-12)
