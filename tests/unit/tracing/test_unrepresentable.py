"""Numbers that a dtype does not hold: assignments raise where NumPy's raise, and only there."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from tracegraph import errors

DTYPES = ["int64", "uint8", "int32", "float32", "float64", "bool", "complex64"]

VALUES = [
    np.nan, np.inf, -np.inf, 1.5, -1.5, 300.0, 3e9, 1e300, 1j, 1 + 0j, complex(np.nan), -1, 300,
    2**31, 2**70, True, np.float64(np.nan), np.float64(-2.5), np.float32(np.inf), np.float32(3e9),
    np.int64(300), np.complex128(1j), np.complex64(2), np.array(np.nan), np.array(1j),
    np.array(300), [np.nan], [1j], [300], [1.5], [True], (2, 3),
    np.array([np.nan, 1]), np.array([1j, 2]), np.array([300, -1]),
]  # fmt: skip

INDICES = {
    "element": 0,
    "slice": slice(None),
    "whole": ...,
    "array": np.array([1, 0]),
    "mask": np.array([True, True]),
}


def outcome(function: Any, x: Any) -> Any:
    """What a function returns, or the class of what NumPy or tracegraph raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, of casts
        try:
            return np.asarray(function(x))
        except (TypeError, ValueError, OverflowError) as error:
            return error


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_assignments_raise_where_numpys_do(dtype: str, index: str) -> None:
    for value in VALUES:

        def assign(x: Any, value: Any = value) -> Any:
            y = x.copy()
            y[INDICES[index]] = value
            return y

        if index == "element" and isinstance(value, (list, tuple)):
            continue  # NumPy takes no sequence there
        x = np.ones(2, dtype)
        wanted, got = outcome(assign, x), outcome(tracegraph.jit(assign, device="host"), x)
        if not isinstance(wanted, Exception):
            if index in ("array", "mask") and isinstance(value, np.floating):
                continue  # NumPy warns and casts there, and raises at other indices
            assert not isinstance(got, Exception), (value, got)
            np.testing.assert_array_equal(got, wanted, err_msg=repr(value))
        elif index != "element" or not isinstance(value, np.ndarray):
            assert isinstance(got, type(wanted)), (value, got)
            assert isinstance(got, errors.UnrepresentableError), (value, got)
            assert "test_unrepresentable.py" in str(got)
            assert dtype[0] in str(got)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1j, 1e30])
def test_other_ways_to_assign_a_number(value: Any) -> None:
    def fill(y: Any) -> None:
        y.fill(value)

    def through_a_view(y: Any) -> None:
        y[::2][0] = value

    def to_a_part(y: Any) -> None:
        y.real[0] = value

    for write in (fill, through_a_view, to_a_part):

        def f(x: Any, write: Any = write) -> Any:
            y = x.copy()
            write(y)
            return y

        with pytest.raises((TypeError, ValueError, OverflowError)):
            f(np.arange(3))
        with pytest.raises(errors.UnrepresentableError, match="is no element of an array"):
            tracegraph.jit(f, device="host")(np.arange(3))

    x = tracegraph.asarray(np.arange(3))
    with pytest.raises(errors.UnrepresentableError):
        x.at[0].set(value)
    with pytest.raises((TypeError, ValueError, OverflowError)):
        tnp.array([1, value], int)
    np.testing.assert_array_equal(x, [0, 1, 2])


def test_a_traced_python_complex_is_no_real_element() -> None:
    @tracegraph.jit(device="host")
    def f(x: Any, z: Any) -> Any:
        y = x.copy()
        y[0] = z
        return y

    x = np.arange(3.0)
    with pytest.raises(errors.UnrepresentableError, match="argument z"):
        f(x, 1j)
    np.testing.assert_array_equal(f(x, 2), [2, 1, 2])
    np.testing.assert_array_equal(f(x * 1j, 2j), [2j, 1j, 2j])


def test_fills_and_conversions_cast_as_numpys_do() -> None:
    def f(xp: Any, x: Any) -> Any:
        return (
            xp.full_like(x, 1.5), xp.full(2, 1j, complex), xp.full_like(x, True),
            xp.full_like(x, np.array(300.0)), xp.array([1.5, 2], int), xp.full_like(x * 1.0, 1j),
            xp.pad(x * 1.0, 1, constant_values=1j), x.astype(float).astype(int),
        )  # fmt: skip

    x = np.arange(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = f(np, x)
        for got, wanted in zip(
            tracegraph.jit(lambda x: f(tnp, x), device="host")(x), expected, strict=True
        ):
            assert got.dtype == wanted.dtype
            np.testing.assert_array_equal(np.asarray(got), wanted)
