"""Matrices and masked arrays are refused wherever they come in: their operations are others."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # matrices are to go
    MATRIX = np.matrix([[1.0, 2.0], [3.0, 4.0]])
MASKED = np.ma.MaskedArray([[1.0, 2.0], [3.0, 4.0]], [[False, True], [False, False]])
X = np.ones((2, 2))


def traced(function: Any) -> Any:
    return tracegraph.jit(function, device="host")(X)


ENTRIES = {
    "argument": lambda v: tracegraph.jit(lambda y: y * y, device="host")(v),
    "nested argument": lambda v: tracegraph.jit(lambda y: y["a"][0], device="host")({"a": [v]}),
    "captured": lambda v: traced(lambda y: y * v),
    "captured by a function": lambda v: traced(lambda y: np.add(v, y)),
    "joined": lambda v: traced(lambda y: np.concatenate([y, v])),
    "chosen": lambda v: traced(lambda y: np.where(y > 0, v, y)),
    "written": lambda v: traced(lambda y: y.at[:].set(v)),
    "returned": lambda v: traced(lambda y: (y, v)),
    "carry": lambda v: tracegraph.fori_loop(0, 2, lambda i, c: c * c, v),
    "traced carry": lambda v: traced(lambda y: tracegraph.fori_loop(0, 2, lambda i, c: c * y, v)),
    "rows": lambda v: tracegraph.map(lambda row: row * 2, v),
    "operand": lambda v: tracegraph.cond(True, lambda c: c * c, lambda c: c, v),
    "array": tracegraph.asarray,
    "eager operand": lambda v: tracegraph.asarray(X) * v,
    "eager function": lambda v: tnp.multiply(tracegraph.asarray(X), v),
}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize(
    ("value", "facts"),
    [(MATRIX, "numpy.matrix.*numpy.asarray"), (MASKED, "masked array.*filled")],
    ids=["matrix", "masked array"],
)
def test_class_is_refused_by_name(entry: str, value: Any, facts: str) -> None:
    with pytest.raises(TypeError, match=facts):
        ENTRIES[entry](value)
    np.testing.assert_array_equal(traced(lambda y: y + 1), X + 1)


def test_other_subclasses_are_arrays() -> None:
    class Tagged(np.ndarray):
        pass

    np.testing.assert_array_equal(traced(lambda y: y * X.view(Tagged)), X)
    found = tracegraph.jit(lambda y: y + 1, device="host")(X.view(Tagged))
    np.testing.assert_array_equal(found, X + 1)
