"""Kernels that print, check, count and decide about loops compile with NVRTC, without a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

import tracegraph
from lowering.cuda.compilation.compile import cubin
from tests.codegen.effects.test_effects_emulated import PROGRAMS
from tests.emulation.plan_emulator import common_unit
from tests.helpers.running import lowered


def bounded(x: Any) -> Any:
    return tracegraph.while_loop(
        lambda c: c.sum() < 100, lambda c: c + 1, x, max_steps=10, progress=True
    )


def test_effects_compile() -> None:
    programs = {**PROGRAMS, "bounded": (bounded, (np.zeros(3),))}
    unit = common_unit(
        [lowered(f, *arguments, device="cuda").plan for f, arguments in programs.values()]
    )
    assert all(name in unit.source for name in ("ring0->head", "*failure0", "*steps0", "*stop0"))
    assert len(cubin(unit.source, "sm_90").code) > 0
