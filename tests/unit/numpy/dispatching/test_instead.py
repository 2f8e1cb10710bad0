"""What errors advise to write for functions that are missing gives what NumPy gives."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tracegraph
from tracegraph import errors
from tracegraph.numpy.dispatching.protocols import _INSTEAD

X = np.arange(15.0).reshape(3, 5)


@pytest.mark.parametrize("name", _INSTEAD)
def test_the_advice_gives_what_numpy_gives(name: str) -> None:
    advised = re.sub(r"^write |, which .*$", "", _INSTEAD[name])
    expected = eval(f"{name}(x)", {"numpy": np, "x": X})
    found = []

    def f(x):
        found.append(eval(advised, {"numpy": np, "x": x}))
        return found[0] if isinstance(expected, np.ndarray) else x

    result = np.asarray(tracegraph.jit(f, device="host")(X))
    if isinstance(expected, np.ndarray):
        np.testing.assert_array_equal(result, expected, strict=True)
    else:
        assert found == [expected]


@pytest.mark.parametrize("name", _INSTEAD)
def test_the_error_says_it(name: str) -> None:
    text = rf"{name} is .*; {re.escape(_INSTEAD[name])}"
    with pytest.raises(errors.UnsupportedByTracerError, match=text):
        tracegraph.jit(lambda x: eval(f"{name}(x)", {"numpy": np, "x": x}), device="host")(X)
