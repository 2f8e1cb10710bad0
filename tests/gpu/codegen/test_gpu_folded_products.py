"""Products that are folded at once, on a GPU: what NumPy gives."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.compiled import gpu_jit
from tests.programs.folded_products import CASES, operands
from tracegraph import tree


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_they_give_what_numpy_gives(name: str, dtype: str) -> None:
    function, given = CASES[name][0], operands(name, dtype)
    with np.errstate(all="ignore"):
        exact = tree.leaves(function(*given))
    for a, b in zip(tree.leaves(gpu_jit(function)(*given)), exact, strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-6)
