"""Statistics, polynomials, bits and special values, traced and jitted, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from number_cases import ARGUMENTS, TABLES
from numpy_agreement import assert_jitted_equals_numpy

import tracegraph as tg
import tracegraph.numpy as tnp
from tracegraph import errors


@pytest.mark.parametrize("expression", TABLES)
def test_expressions_equal_numpys(expression: str) -> None:
    assert_jitted_equals_numpy(expression, ARGUMENTS)


def test_the_dtype_of_real_if_close_must_be_known() -> None:
    f: Any = tg.jit(np.real_if_close, device="host")
    with pytest.raises(errors.UnsupportedByTracerError, match=r"write x\.real"):
        f(ARGUMENTS["c"])
    x = tg.asarray(np.array([1 + 1e-18j, 2]))
    assert tnp.real_if_close(x).dtype == np.float64
    assert tnp.real_if_close(x + 1j).dtype == np.complex128


def test_leading_zeros_of_a_traced_polynomial_stay() -> None:
    f: Any = tg.jit(np.polymul, device="host")
    np.testing.assert_array_equal(np.asarray(f(np.array([0.0, 1.0]), np.array([2.0]))), [0, 2])


def test_weights_of_observations_have_their_shape() -> None:
    for weights in (np.ones(3), np.ones((2, 11))):
        f: Any = tg.jit(lambda x, w: np.cov(x, aweights=w), device="host")
        with pytest.raises(RuntimeError, match="aweights"):
            f(ARGUMENTS["x"], weights)
