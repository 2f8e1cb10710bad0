"""Elementwise functions of users in kernels: they compile, and give the reference's values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.cuda.compilation.compile import cubin
from tests.cases.custom_functions import (
    CASES,
    FOLDS,
    distinct,
    each_case,
    each_fold,
    folded,
    operands,
    surrounded,
)
from tests.emulation.plan_emulator import common_unit
from tests.helpers.devices import Device
from tests.helpers.running import lowered
from tracegraph import tree
from tracegraph.testing.differences import tolerance_of

PROGRAMS = {f"{n}": (surrounded(f), operands(dtypes)) for n, (f, dtypes) in enumerate(CASES)}
PROGRAMS |= {f"fold {n}": (folded(f), (distinct(d),)) for n, (f, d) in enumerate(FOLDS)}


def test_they_compile_in_one_unit() -> None:
    plans = [lowered(f, *xs, device="cuda").plan for f, xs in PROGRAMS.values()]
    unit = common_unit(plans)
    assert cubin(unit.source, "sm_90").code


@each_case
def test_values(function: Any, dtypes: Any, device: Device) -> None:
    number = CASES.index((function, dtypes))
    program, xs = PROGRAMS[str(number)]
    found = tree.leaves(device.run(str(number), *xs))
    expected = tree.leaves(tracegraph.jit(program, device="host")(*xs))
    for a, b in zip(map(np.asarray, expected), found, strict=True):
        if a.dtype.kind in "biu":
            np.testing.assert_array_equal(b, a)
        else:
            rtol = tolerance_of(a.dtype, 64)  # in a chain of calls
            np.testing.assert_allclose(b.astype("c16"), a.astype("c16"), rtol=rtol)


@each_fold
def test_folds(fold: Any, dtype: Any, device: Device) -> None:
    name = f"fold {FOLDS.index((fold, dtype))}"
    program, xs = PROGRAMS[name]
    found = tree.leaves(device.run(name, *xs))
    for a, b in zip(tree.leaves(program(*xs)), found, strict=True):
        np.testing.assert_array_equal(b, a)


def test_an_unknown_name_is_in_the_log(tmp_path: Path) -> None:
    wrong = tracegraph.elementwise(lambda x: x, cuda="unknown({0})")
    source = tracegraph.jit(lambda x: wrong(x) + 1, device="cuda").lower(np.ones(3)).source
    with pytest.raises(RuntimeError, match=r"_emulated\.py:\d+\)\(\d\): error"):
        cubin(source, "sm_90")
