"""The algorithms of factorizations as kernels: they compile, and run on the CPU they agree."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from agreement import check
from emulator import COMPILER
from plan_emulator import EmulatedPlans
from running import lowered

from lowering.cuda.compile import cubin
from tracegraph.algorithms import ALGORITHMS
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import Op, get

each_op = pytest.mark.parametrize("op", [get(name) for name in ALGORITHMS], ids=lambda op: op.name)


def of_all_samples(op: Op) -> tuple[Any, list[tuple[Any, ...]]]:
    """A function of the operands of all samples, and these operands."""
    samples = [s for s in op.samples() if all(np.size(x) for x in s.operands)]

    def every(given: Any) -> list[Any]:
        return [apply(op, *xs, **s.attrs) for xs, s in zip(given, samples, strict=True)]

    return every, [tuple(map(np.asarray, s.operands)) for s in samples]


@each_op
@pytest.mark.skipif(COMPILER is None, reason="needs g++")
def test_kernels_give_what_the_reference_gives(op: Op, tmp_path: Any) -> None:
    every, given = of_all_samples(op)
    plans = EmulatedPlans({"every": (every, (given,))}, tmp_path)
    samples = [s for s in op.samples() if all(np.size(x) for x in s.operands)]
    for order in (None, Random(0)):
        found = plans.run("every", given, order=order)
        for sample, results in zip(samples, found, strict=True):
            check(op, sample, lambda *_, results=results: results)


@each_op
def test_kernels_compile(op: Op) -> None:
    every, given = of_all_samples(op)
    source = lowered(every, given, device="cuda").source
    assert len(cubin(source, "sm_90").code) > 0
