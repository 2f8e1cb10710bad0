"""dynamic_slice and dynamic_update_slice: windows of a static size at a traced position."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph

DTYPES = ["bool", "int8", "int64", "float16", "float32", "complex64"]


def start_of(start: int, extent: int, size: int) -> int:
    return min(max(start + extent if start < 0 else start, 0), extent - size)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("starts", [(0, 0), (1, 2), (9, -1), (-2, -9), (2, 1)])
def test_windows_of_matrices(starts: tuple[int, int], dtype: str) -> None:
    x = np.arange(20).reshape(4, 5).astype(dtype)
    update = np.full((2, 3), 7, dtype)
    row, column = (start_of(s, n, k) for s, n, k in zip(starts, x.shape, (2, 3), strict=True))
    window = x[row : row + 2, column : column + 3]
    changed = x.copy()
    changed[row : row + 2, column : column + 3] = update

    def both(x: Any, update: Any, starts: Any) -> Any:
        return (
            tracegraph.dynamic_slice(x, starts, (2, 3)),
            tracegraph.dynamic_update_slice(x, update, starts),
        )

    jitted = tracegraph.jit(both, device="host")
    vector = np.array(starts, np.int32)
    for got in (
        both(x, update, starts),
        both(tracegraph.asarray(x), update, list(starts)),
        both(x, update, vector),
        jitted(x, update, starts),
        jitted(x, update, vector),
    ):
        for result, wanted in zip(got, (window, changed), strict=True):
            assert result.dtype == wanted.dtype
            np.testing.assert_array_equal(np.asarray(result), wanted)


def test_in_a_loop() -> None:
    def reversed_pairs(x: Any) -> Any:
        def step(k: Any, y: Any) -> Any:
            pair = tracegraph.dynamic_slice(x, (2 * k,), (2,))
            return tracegraph.dynamic_update_slice(y, pair[::-1], (2 * k,))

        return tracegraph.fori_loop(0, len(x) // 2, step, np.zeros_like(x))

    x = np.arange(6.0)
    wanted = [1, 0, 3, 2, 5, 4]
    np.testing.assert_array_equal(np.asarray(reversed_pairs(x)), wanted)
    got = tracegraph.jit(reversed_pairs, device="host")(x)
    np.testing.assert_array_equal(np.asarray(got), wanted)


def test_empty_windows_scalars_and_unsigned_starts() -> None:
    x = np.arange(4)
    jit = tracegraph.jit
    assert jit(lambda x, k: tracegraph.dynamic_slice(x, (k,), (0,)))(x, 2).shape == (0,)
    assert int(jit(lambda x: tracegraph.dynamic_slice(x, (), ()))(np.array(3))) == 3
    got = jit(lambda x, k: tracegraph.dynamic_slice(x, (k,), (2,)))(x, np.uint8(200))
    np.testing.assert_array_equal(np.asarray(got), [2, 3])


def test_updates_are_cast() -> None:
    got = tracegraph.dynamic_update_slice(np.arange(3), [1.5], (1,))
    np.testing.assert_array_equal(np.asarray(got), [0, 1, 2])
    assert got.dtype == np.int64


@pytest.mark.parametrize(
    ("starts", "sizes", "error", "message"),
    [
        ((0,), (1, 1), ValueError, "one start for each of the 2 axes"),
        ((0, 0), (1,), ValueError, "one size for each of the 2 axes"),
        ((0, 0), (4, 1), ValueError, "does not fit"),
        ((0, 0), (-1, 1), ValueError, "does not fit"),
        ((0.5, 0), (1, 1), TypeError, "integer scalar, got float64"),
        (np.zeros((1, 2), int), (1, 1), ValueError, "vector"),
        (0, (1, 1), ValueError, "vector"),
    ],
)
def test_wrong_windows(
    starts: Any, sizes: tuple[int, ...], error: type[Exception], message: str
) -> None:
    x = np.zeros((3, 3))
    with pytest.raises(error, match=message):
        tracegraph.dynamic_slice(x, starts, sizes)
    with pytest.raises(error, match=message):
        tracegraph.jit(lambda x: tracegraph.dynamic_slice(x, starts, sizes), device="host")(x)


def test_wrong_updates() -> None:
    with pytest.raises(ValueError, match="the 2 axes of x"):
        tracegraph.dynamic_update_slice(np.zeros((3, 3)), np.zeros(3), (0, 0))
    with pytest.raises(ValueError, match="does not fit"):
        tracegraph.dynamic_update_slice(np.zeros((3, 3)), np.zeros((1, 4)), (0, 0))
