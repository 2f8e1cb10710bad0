"""Kernels that exchange arrays with other devices compile with NVRTC, without a GPU."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest

import tracegraph
from lowering.codegen import unit_source
from lowering.plan.target.overrides import override
from tests.codegen.scheduling.test_peers_emulated import form_of_all, of_all_dtypes
from tracegraph import Mesh, shard
from tracegraph import PartitionSpec as P

core = pytest.importorskip("cuda.core")

GRID = Mesh((2, 3), ("x", "y"), device="cuda")


def compile_plan(plan: Any) -> None:
    options = core.ProgramOptions(arch="sm_90", std="c++17", fma=False)
    unit = unit_source(plan)
    assert any(code.peers for code in unit.kernels.values())
    core.Program(unit.source, "c++", options).compile("cubin")


@pytest.mark.parametrize("form", ["words", "arrays"])
def test_all_kinds_in_kernels_of_their_own(form: str) -> None:
    specs = (P(("x", "y")),) * 2
    given = [np.ones((6, 75), dtype) for dtype in ("float16", "complex64")]
    mapped = shard(of_all_dtypes, mesh=GRID, in_specs=specs, out_specs=specs)
    with form_of_all(form), override(loops="conditional"):
        compile_plan(tracegraph.jit(mapped).lower(*given).plan)


def test_a_group_of_more_bytes_than_one_may_have() -> None:
    def fun(x: Any, y: Any) -> Any:
        def step(i: Any, state: Any) -> Any:
            x, y = state
            return 0.1 * tracegraph.pmean(y, "x"), 0.1 * tracegraph.pmean(x, "x")

        return tracegraph.fori_loop(0, 9, step, (x, y), schedule="one_kernel")

    specs = (P("x"), P("x"))
    mapped = shard(fun, mesh=GRID, in_specs=specs, out_specs=specs)
    with mock.patch("lowering.plan.calls.collectives.PHASE_BYTES", 800):
        compile_plan(tracegraph.jit(mapped).lower(np.ones(200), np.ones(200)).plan)
