"""Contractions as kernels: they compile, and run on the CPU they give what NumPy gives."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from lowering.cuda.compilation.compile import cubin
from tests.cases.contractions import CASES, DTYPES, assert_contracts, operands, power_iteration
from tests.emulation.emulator import COMPILER
from tests.emulation.front_end import assert_front_end_accepts
from tests.emulation.plan_emulator import EmulatedPlans
from tests.helpers.forced import FORCED, scheduled
from tests.helpers.running import lowered
from tracegraph import cond

_KINDS = ("float16", "float32", "float64", "complex64", "int8", "bool")
EMULATED = [dtype for dtype in DTYPES if dtype.name in _KINDS]
"""Those that differ in how they are computed; a GPU runs all."""


@pytest.mark.skipif(COMPILER is None, reason="needs g++")
@pytest.mark.parametrize("dtype", EMULATED, ids=str)
def test_kernels_give_what_numpy_gives(dtype: np.dtype[Any], tmp_path: Any) -> None:
    programs = {name: (CASES[name][0], operands(name, dtype)) for name in CASES}
    plans = EmulatedPlans(programs, tmp_path)
    for name in CASES:
        for order in (None, Random(0)):

            def run(_: Any, *given: Any, name: str = name, order: Any = order) -> Any:
                return plans.run(name, *given, order=order)

            assert_contracts(run, name, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_kernels_compile(dtype: np.dtype[Any]) -> None:
    def all_of_them(*given: Any) -> Any:
        pairs = zip(given[::2], given[1::2], strict=True)
        functions = (function for function, _ in CASES.values())
        return [f(x, y) for f, (x, y) in zip(functions, pairs, strict=True)]

    given = [x for name in CASES for x in operands(name, dtype)]
    source = lowered(all_of_them, *given, device="cuda").source
    assert_front_end_accepts(source)
    if str(dtype) in ("float32", "bfloat16"):
        assert len(cubin(source, "sm_90").code) > 0


@pytest.mark.skipif(COMPILER is None, reason="needs g++")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kernels_of_all_schedules_give_the_same_bits(dtype: str, tmp_path: Any) -> None:
    rng = np.random.default_rng(3)
    a, v = rng.standard_normal((90, 90)).astype(dtype), rng.standard_normal(90).astype(dtype)

    def run(a: Any, v: Any, n: Any) -> Any:
        v = power_iteration(a, v, n)
        return cond(n > 5, lambda: v @ a, lambda: a @ v)

    found = {}
    for way in FORCED:
        (tmp_path / way).mkdir()
        plans = EmulatedPlans(
            {"run": (run, (a, v, np.int64(7)))},
            tmp_path / way,
            lambda stage, way=way: scheduled(stage, FORCED[way]),
        )
        for n in (0, 4, 7):
            found[way, n] = np.asarray(plans.run("run", a, v, np.int64(n))).tobytes()
    for n in (0, 4, 7):
        assert len({found[way, n] for way in FORCED}) == 1
