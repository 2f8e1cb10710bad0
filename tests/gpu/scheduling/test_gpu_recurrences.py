"""Linear recurrences in chunks on a GPU: what NumPy gives, one step after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.compiled import on_gpu
from tests.programs.recurrences import LINEAR, UNIT, ZERO, X, running
from tracegraph import tree


@pytest.mark.parametrize("name", LINEAR)
def test_they_are_those_of_numpy(name: str) -> None:
    function, arguments = LINEAR[name]
    with np.errstate(all="ignore"):  # integers wrap around
        expected = tree.leaves(function(*arguments))
    found = tree.leaves(on_gpu(function, *arguments))
    for got, wanted in zip(found, map(np.asarray, expected), strict=True):
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        unit = 0 if wanted.dtype.kind == "i" else np.finfo(wanted.dtype).eps
        size = np.abs(wanted).max() * unit
        np.testing.assert_allclose(got, wanted, rtol=0, atol=300 * size)


@pytest.mark.parametrize("factor", [0.5, 1.5, np.nan])
def test_factors_that_are_arguments(factor: float) -> None:
    factors = UNIT.copy()
    factors[500, 1] = factor

    def weighted(x: Any, a: Any) -> Any:
        return running(lambda h, x, a: a * h + x, ZERO, x, a)[1]

    np.testing.assert_allclose(
        on_gpu(weighted, X, factors), weighted(X, factors), rtol=1e-11, atol=1e-12
    )
