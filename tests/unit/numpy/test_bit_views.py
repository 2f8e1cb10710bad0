"""Views of bits: `x.view(dtype)` between sizes, of booleans, and of complex numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.compiled import on_host
from tracegraph import errors

DTYPES = ["bool", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "c8", "c16"]


@pytest.mark.parametrize("target", DTYPES)
@pytest.mark.parametrize("source", DTYPES)
def test_bits_are_those_of_numpy(source: str, target: str) -> None:
    if target == "bool" and source not in ("bool", "u1", "i1"):
        return  # of bytes that are neither 0 nor 1
    x = (np.arange(96).reshape(2, 3, 16) * 37 % 11).astype(source)
    if target == "bool":
        x = (x > 4).astype(source)
    got, wanted = on_host(lambda x: x.view(target), x), x.view(target)
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got.view("u1"), wanted.view("u1"), strict=True)


def test_scalars_keep_their_size() -> None:
    assert on_host(lambda x: x.view(np.uint8), np.array(True)) == 1
    with pytest.raises(ValueError, match="without axes"):
        on_host(lambda x: x.view(np.int16), np.array(1))


def test_the_last_axis_is_a_whole_number_of_elements() -> None:
    with pytest.raises(ValueError, match="whole number of float64"):
        on_host(lambda x: x.view(np.float64), np.zeros((2, 3), np.float32))


@pytest.mark.parametrize("target", ["u1", "i4", "f8", "c16"])
def test_writes_pass_through_such_views(target: str) -> None:
    def call(x: Any) -> Any:
        y = x.copy()
        view = y.view(target)
        view[..., 0] = 1
        y[0, 3] = 7.5
        view[1] = view[0]
        return y

    x = np.arange(16.0).reshape(2, 8)
    np.testing.assert_array_equal(on_host(call, x), call(x), strict=True)


def test_booleans_are_written_through_their_bytes() -> None:
    def call(x: Any) -> Any:
        y = x.copy()
        y.view(np.uint8)[1:] ^= 1
        return y

    x = np.array([True, False, True, True])
    np.testing.assert_array_equal(on_host(call, x), call(x), strict=True)


def test_arguments_are_not_written_to_through_views() -> None:
    def call(x: Any) -> Any:
        x.view(np.uint8)[0] = 1
        return x

    with pytest.raises(errors.TracerWriteError):
        on_host(call, np.zeros(3))


def test_a_transposed_array_is_no_row_of_bytes() -> None:
    with pytest.raises(errors.UnsupportedByTracerError, match="gaps in its last axis"):
        on_host(lambda x: x.copy().T.view(np.uint8), np.zeros((2, 3)))


def test_a_shape_is_no_dtype() -> None:
    with pytest.raises(TypeError, match=r"got -1; to change a shape, write x\.reshape"):
        on_host(lambda x: x.view(-1), np.ones((2, 3)))
