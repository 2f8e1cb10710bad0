"""Fourier transforms by kernels of our own: run on the CPU, they give what the references give."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from lowering.algorithms import TRANSFORMS
from lowering.lower import lower_without_libraries
from tests.emulation.emulator import COMPILER
from tests.emulation.plan_emulator import EmulatedPlans
from tests.helpers.agreement import check
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import Sample, get
from tracegraph.ops.sampling import ramp


@pytest.mark.skipif(COMPILER is None, reason="needs g++")
def test_kernels_give_what_the_reference_gives(tmp_path: Any) -> None:
    cases = [(get(name), sample) for name in TRANSFORMS for sample in get(name).samples()]
    attrs = {"rank": 1, "inverse": False}
    cases += [(get("fft"), Sample((ramp((3, n), np.complex128),), attrs)) for n in (60, 97, 1031)]
    cases = [(op, s) for op, s in cases if np.size(s.operands[0])]
    given = [np.asarray(sample.operands[0]) for _, sample in cases]

    def every(arrays: list[Any]) -> list[Any]:
        return [apply(op, x, **s.attrs) for (op, s), x in zip(cases, arrays, strict=True)]

    plans = EmulatedPlans(
        {"every": (every, (given,))},
        tmp_path,
        lambda stage: lower_without_libraries(stage.optimized, "cuda"),
    )
    found = plans.run("every", given, order=Random(0))
    for (op, sample), result in zip(cases, found, strict=True):
        if sample.operands[0].shape[-1] < 60:
            check(op, sample, lambda *_, result=result: result)
        else:
            expected = op.reference(sample.operands[0], **sample.attrs)
            assert np.abs(result - expected).max() < 1e-14 * np.abs(expected).max()
