"""What errors advise to write for functions that are missing gives what NumPy gives."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tracegraph
from tracegraph import errors
from tracegraph.numpy.protocols import _INSTEAD

X = np.array([[1.5, np.nan, -2.0, 4.0], [np.nan, 0.25, 3.0, -1.0]])
CALLS = {
    "numpy.apply_over_axes": (
        "numpy.apply_over_axes(numpy.sum, x, (0, 1))", "numpy.sum(x, axis=(0, 1), keepdims=True)"
    ),
    "numpy.array_equiv": ("numpy.array_equiv(x, y)", None),
    "numpy.diag_indices_from": ("numpy.diag_indices_from(x[:, :2])", None),
    "numpy.digitize": ("numpy.digitize(x, edges)", None),
    "numpy.iscomplex": ("numpy.iscomplex(x * 1j)", None),
    "numpy.isin": ("numpy.isin(x, values)", None),
    "numpy.isreal": ("numpy.isreal(x)", None),
    "numpy.linalg.multi_dot": ("numpy.linalg.multi_dot([a, b, c])", None),
    "numpy.nanargmax": ("numpy.nanargmax(x)", None),
    "numpy.nanargmin": ("numpy.nanargmin(x)", None),
    "numpy.tril_indices_from": ("numpy.tril_indices_from(x)", None),
    "numpy.triu_indices_from": ("numpy.triu_indices_from(x)", None),
}  # fmt: skip


@pytest.mark.parametrize("name", _INSTEAD)
def test_the_advice_gives_what_numpy_gives(name: str) -> None:
    call, advised = CALLS[name]
    if advised is None:
        advised = re.sub(r"^(write|count the edges,) ", "", _INSTEAD[name])
    if name == "numpy.iscomplex":
        advised = advised.replace("(x)", "(x * 1j)")
    fixed = {
        "numpy": np, "y": X + 0, "edges": np.array([-1.0, 0.25, 3.0]), "values": [4.0, -2.0, 7.0],
        "a": np.ones((2, 3)), "b": np.ones((3, 2)), "c": np.ones((2, 4)),
    }  # fmt: skip
    x = np.nan_to_num(X, nan=9.0) if name == "numpy.digitize" else X
    expected = eval(call, {**fixed, "x": x})
    if name == "numpy.diag_indices_from":
        x = x[:, :2]
    found = tracegraph.jit(lambda x: eval(advised, {**fixed, "x": x}), device="host")(x)
    for got, wanted in zip(np.atleast_1d(found), np.atleast_1d(expected), strict=True):
        np.testing.assert_array_equal(np.asarray(got), wanted)


def test_the_error_says_it() -> None:
    with pytest.raises(errors.UnsupportedByTracerError, match=r"isreal is .*; write numpy\.imag"):
        tracegraph.jit(lambda x: np.isreal(x), device="host")(X)
