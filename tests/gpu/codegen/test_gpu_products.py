"""Products by tiles on a GPU: what the host gives, and the same bits in every run."""

from __future__ import annotations

import numpy as np
import pytest

import tracegraph
from tests.helpers.compiled import gpu_jit, on_host
from tests.programs.tiled_products import CASES, operands
from tracegraph import tree

BOUNDS = {"float32": 2e-5, "float64": 1e-13}


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("name", CASES)
def test_tiles_give_what_the_host_gives(name: str, dtype: str) -> None:
    function, given = CASES[name][0], operands(name, dtype)
    exact = tree.leaves(on_host(function, *[x.astype("float64") for x in given]))
    jitted = gpu_jit(function)
    runs = [[np.asarray(x) for x in tree.leaves(jitted(*given))] for _ in range(3)]
    for a, b in zip(runs[0], exact, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=BOUNDS[dtype] * np.abs(b).max())
    for other in runs[1:]:
        assert [x.tobytes() for x in other] == [x.tobytes() for x in runs[0]]


@pytest.mark.parametrize("name", CASES)
def test_tensor_cores_give_what_the_host_gives_in_eleven_bits(name: str) -> None:
    function, given = CASES[name][0], operands(name, "float32")
    exact = tree.leaves(on_host(function, *[x.astype("float64") for x in given]))
    with tracegraph.matmul_precision("tf32"):
        found = tree.leaves(gpu_jit(function)(*given))
    for a, b in zip(found, exact, strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=0, atol=1e-2 * np.abs(b).max())
