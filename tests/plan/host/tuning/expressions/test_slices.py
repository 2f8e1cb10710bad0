"""Views of arguments and results as slices."""

from __future__ import annotations

import numpy as np
import pytest

from lowering.host.evaluation.instructions import View
from lowering.host.tuning.expressions.slices import slices_of
from lowering.plan.nests.buffer import Buffer
from tracegraph.ir.types import ArrayType

X = np.arange(60, dtype=np.float32).reshape(3, 1, 4, 5)


def index_of(window):
    offset = (window.__array_interface__["data"][0] - X.__array_interface__["data"][0]) % X.nbytes
    buffer = Buffer("input", 0, ArrayType(X.dtype, X.shape))
    return slices_of(View(X.dtype, window.shape, {}, buffer, window.strides, offset))


@pytest.mark.parametrize(
    "window",
    [
        X,
        X[1:, :, 2:],
        X[::-1, 0, ::2, 3:0:-1],
        X[2, 0, 3, 4, ...],
        X[:, 0, 1:2, ::-2],
        X[2:, :, 3:, 1:3],
        X[0, :, :, 2][:, None, :, None],
        X[:, 0, 0, 0],
    ],
)
def test_windows_are_slices(window):
    found = X[index_of(window)]
    assert found.shape == window.shape
    assert found.__array_interface__["data"] == window.__array_interface__["data"]
    np.testing.assert_array_equal(found, window)


@pytest.mark.parametrize("window", [X.reshape(60)[1:], X.T, X[0, 0].diagonal()])
def test_other_windows_are_not(window):
    assert index_of(window) is None
