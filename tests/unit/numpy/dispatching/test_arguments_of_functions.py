"""Arguments of functions that are rarely given: each does, or raises, what it does in NumPy."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph import tree

X = np.arange(12.0).reshape(3, 4) - 4
I = np.arange(12, dtype=np.int8).reshape(3, 4)
Call = Callable[[Any, Any], Any]

CALLS: dict[str, Call] = {
    "clip with casting": lambda x, i: np.clip(x, -1.5, 2.5, out=i.copy(), casting="unsafe"),
    "clip in a dtype": lambda x, i: np.clip(i, 2, 5, dtype=np.float32),
    "clip where": lambda x, i: np.clip(x, 0, 2, out=x * 1, where=x > 0),
    "clip on one side": lambda x, i: i.clip(None, 5, out=i * 1, casting="same_kind"),
    "einsum in a dtype": lambda x, i: np.einsum("ij,ij->i", i, i, dtype=np.float32),
    "einsum with casting": lambda x, i: np.einsum("ij->j", x, dtype=int, casting="unsafe"),
    "einsum with order": lambda x, i: np.einsum(x, [0, 1], [1, 0], order="F"),
    "einsum of NumPy's integers": lambda x, i: np.einsum(x, np.array([0, 1]), [0]),
    "cross in the plane": lambda x, i: np.cross(x[:2, 0], x[1:, 1]),
    "cross of two and three": lambda x, i: np.cross(x[:2, 0], x[:, 1]),
    "cross of three and two": lambda x, i: np.cross(x[:, 0], x[1:, 1]),
    "size of axes": lambda x, i: np.zeros_like(x, shape=np.size(x, (0, 1))),
    "roll by a large number": lambda x, i: np.roll(x, 2**66 + 1),
    "roll of axes by large numbers": lambda x, i: np.roll(x, (2**66 + 1, -(2**70) + 1), (0, 1)),
    "choose into integers": lambda x, i: np.choose(i % 2, [x, x + 0.5], out=i * 1),
    "take into an array": lambda x, i: np.take(x, [0, 2], axis=0, out=np.ones_like(x[:2])),
    "matmul of a vector with axes": lambda x, i: np.matmul(x, x[:, 0], axes=[(1, 0), 0, 0]),
    "in-place product of matrices": lambda x, i: (x[:, :3] * 1).__imatmul__(x[:, 1:] * 1),
    "percentile into one element": lambda x, i: np.percentile(x, 50, out=x[0, :1] * 1),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_it_gives_what_it_gives_in_numpy(call: Call) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # DeprecationWarning of vectors of two elements
        wanted = tree.leaves(call(X, I))
    found = tree.leaves(tracegraph.jit(call, device="host")(X, I))
    for got, value in zip(map(np.asarray, found), map(np.asarray, wanted), strict=True):
        assert (got.dtype, got.shape) == (value.dtype, value.shape)
        np.testing.assert_allclose(got, value, rtol=1e-6 if value.dtype == np.float32 else 1e-13)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: np.clip(x, 0, 1, casting="no", dtype=np.float32), TypeError),
        (lambda x: np.einsum("ij->j", x, dtype=int), TypeError),
        (lambda x: np.einsum(x, [0, 52], [0]), ValueError),
        (lambda x: np.einsum(x, [-1, 5], [5]), ValueError),
        (lambda x: np.cross(x, x), ValueError),
        (lambda x: np.linalg.cross(x[:, :2], x[:, :2]), ValueError),
        (lambda x: np.size(x, (0, 2)), IndexError),
        (lambda x: np.rollaxis(x, 0, -3), np.exceptions.AxisError),
        (lambda x: np.take(x, [0], axis=0, out=np.ones_like(x)), ValueError),
        (lambda x: np.take(x, [0], axis=0, out=np.ones_like(x[:1], complex)), TypeError),
        (lambda x: np.partition(x, 1, kind=1), TypeError),
        (lambda x: (x * 1).__imatmul__(x[0] * 1), ValueError),
        (lambda x: np.vecdot(x, x, keepdims="true"), TypeError),
    ],
)
def test_what_numpy_refuses_is_refused(call: Callable[[Any], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        call(X)
    with pytest.raises(error):
        tracegraph.jit(call, device="host")(X)
