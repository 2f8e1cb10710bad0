"""Results of NumPy loops that are wrong for strided outputs are right on the host."""

from __future__ import annotations

import numpy as np
import pytest

import tracegraph

FLOATS = np.array([0.0, -0.0, 1.5, -np.inf, np.inf, np.nan, -7.0, 1e4] * 5)


def on_host(function, *arguments):
    return np.asarray(tracegraph.jit(function, device="host")(*arguments))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("test", [np.isfinite, np.isinf, np.isnan, np.signbit])
def test_predicates_on_floats_with_strided_outputs(test, dtype):
    x = FLOATS.astype(dtype)
    expected = [test(each) for each in x]
    strided = on_host(lambda x: np.stack([test(x), x > 0], axis=1), x)
    np.testing.assert_array_equal(strided[:, 0], expected)
    np.testing.assert_array_equal(on_host(lambda x: test(x)[::-1], x), expected[::-1])
    transposed = on_host(lambda x: test(x.T), x.reshape(5, 8))
    np.testing.assert_array_equal(transposed, np.reshape(expected, (5, 8)).T)


@pytest.mark.parametrize(
    "dtype",
    [np.int8, np.uint32, np.int64, np.float32, np.float64, np.complex64],
)
@pytest.mark.parametrize("step", [1, 2, 4, 8])
def test_negatives_of_strided_elements(dtype, step):
    x = np.arange(50 * 2 * step).reshape(50, -1).astype(dtype)
    expected = np.negative(x[:, ::step].copy())
    np.testing.assert_array_equal(on_host(lambda x: -x[:, ::step], x), expected)
    pairs = on_host(lambda x: np.stack([-x[:, 0], -x[:, step]], axis=1), x)
    np.testing.assert_array_equal(pairs, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_negatives_of_floats_have_the_other_sign(dtype):
    x = FLOATS.astype(dtype)
    found = on_host(lambda x: -x, x)
    np.testing.assert_array_equal(found, np.negative(x))
    sure = ~np.isnan(x)  # what NaN's sign is does not matter
    np.testing.assert_array_equal(np.signbit(found)[sure], ~np.signbit(x)[sure])
    assert np.signbit(on_host(lambda x: -x, dtype(0)))
