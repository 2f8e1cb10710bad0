"""Special functions at poles, halves, infinities and NaN, as generated CUDA C++ run on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.cases.special_grids import (
    FUNCTIONS,
    ORDINARY,
    assert_is_hosts,
    assert_is_hosts_betainc,
    assert_is_scipys,
    large_parameters,
    numbers,
    operands,
)
from tests.emulation.emulator import COMPILER
from tests.emulation.plan_emulator import EmulatedPlans
from tracegraph import special

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")

DTYPES = {"float32": np.float32, "float64": np.float64}


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> EmulatedPlans:
    programs = {
        f"{name} of {dtype}": (FUNCTIONS[name], operands(name, DTYPES[dtype]))
        for name in FUNCTIONS
        for dtype in DTYPES
    }
    programs |= {
        f"{name} of {dtype}": (getattr(special, name), (numbers(name, DTYPES[dtype]),))
        for name in ORDINARY
        for dtype in DTYPES
    }
    programs["betainc"] = (special.betainc, large_parameters()[0])
    return EmulatedPlans(programs, tmp_path_factory.mktemp("grids"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_on_the_grid_are_scipys(name: str, dtype: str, plans: EmulatedPlans) -> None:
    found: Any = plans.run(f"{name} of {dtype}", *operands(name, DTYPES[dtype]))
    assert_is_scipys(name, found, DTYPES[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ORDINARY)
def test_values_at_ends_are_those_of_the_host(name: str, dtype: str, plans: EmulatedPlans) -> None:
    if name in ("erfinv", "erfcinv", "ndtri") and dtype == "float64":
        pytest.skip("the functions that stand in for CUDA's have 12 digits")
    found: Any = plans.run(f"{name} of {dtype}", numbers(name, DTYPES[dtype]))
    assert_is_hosts(name, found, DTYPES[dtype])


def test_the_incomplete_beta_function_of_large_parameters(plans: EmulatedPlans) -> None:
    assert_is_hosts_betainc(plans.run("betainc", *large_parameters()[0]))
