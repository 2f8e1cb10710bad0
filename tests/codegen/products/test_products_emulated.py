"""Products by tiles: they compile, and run on the CPU they give what other plans give."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.cuda.compilation.compile import cubin
from tests.emulation.emulator import COMPILER
from tests.emulation.front_end import assert_front_end_accepts
from tests.emulation.plan_emulator import EmulatedPlans
from tests.helpers.compiled import on_host
from tests.helpers.running import lowered
from tests.programs.tiled_products import CASES, operands
from tracegraph import tree

BOUNDS = {"float32": 2e-5, "float64": 1e-13}


@pytest.mark.skipif(COMPILER is None, reason="needs g++")
@pytest.mark.parametrize("dtype", BOUNDS)
def test_tiles_give_what_the_host_gives(dtype: str, tmp_path: Any) -> None:
    names = CASES if dtype == "float32" else ("convolution", "padding", "small matrices")
    programs = {name: (CASES[name][0], operands(name, dtype)) for name in names}
    plans = EmulatedPlans(programs, tmp_path)
    for name, (function, given) in programs.items():
        exact = tree.leaves(on_host(function, *[x.astype("float64") for x in given]))
        found = tree.leaves(plans.run(name, *given, order=Random(0)))
        for a, b in zip(found, exact, strict=True):
            bound = BOUNDS[dtype] * np.abs(b).max()
            np.testing.assert_allclose(a, b, rtol=0, atol=bound, err_msg=name)


@pytest.mark.skipif(COMPILER is None, reason="needs g++")
def test_warps_multiply_factors_of_eleven_bits(tmp_path: Any) -> None:
    names = ("convolution",)
    programs = {name: (CASES[name][0], operands(name, "float32")) for name in names}
    with tracegraph.matmul_precision("tf32"):
        plans = EmulatedPlans(programs, tmp_path)
    for name, (function, given) in programs.items():
        exact = tree.leaves(on_host(function, *[x.astype("float64") for x in given]))
        for a, b in zip(tree.leaves(plans.run(name, *given)), exact, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-2 * np.abs(b).max(), err_msg=name)


@pytest.mark.parametrize("dtype", BOUNDS)
def test_tiles_compile(dtype: str) -> None:
    def all_of_them(given: Any) -> Any:
        return [CASES[name][0](*arrays) for name, arrays in given.items()]

    arguments = {name: operands(name, dtype) for name in CASES}
    with tracegraph.matmul_precision("tf32"):
        rounded = lowered(all_of_them, arguments, device="cuda").source
    source = lowered(all_of_them, arguments, device="cuda").source
    assert source.count("left_next") > 2 * len(CASES)
    if dtype == "float32":
        assert len(cubin(rounded, "sm_90").code) > 0
        assert_front_end_accepts(source)
    else:
        assert len(cubin(source, "sm_90").code) > 0
