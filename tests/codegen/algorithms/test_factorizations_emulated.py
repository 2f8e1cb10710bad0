"""The algorithms of factorizations as kernels: they compile, and run on the CPU they agree."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

from lowering.algorithms import ALGORITHMS, BY_LIBRARY
from lowering.cuda.compilation.compile import cubin
from lowering.plan.target.overrides import override
from lowering.planning.factorizations import FactorizationForm
from tests.emulation.emulator import COMPILER
from tests.emulation.front_end import assert_front_end_accepts
from tests.emulation.plan_emulator import EmulatedPlans
from tests.helpers.agreement import check
from tests.helpers.running import lowered
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import Op, Sample, get
from tracegraph.ops.factorizations.matrices import positive_definite

each_case = pytest.mark.parametrize(
    ("op", "form"),
    [
        *((get(name), "own") for name in ALGORITHMS),
        *((get(name), "library") for name in BY_LIBRARY),
    ],
    ids=lambda each: each if isinstance(each, str) else each.name,
)


def of_all(op: Op, samples: Sequence[Sample]) -> tuple[Any, list[tuple[Any, ...]]]:
    """A function of the operands of all samples, and these operands."""

    def every(given: Any) -> list[Any]:
        return [apply(op, *xs, **s.attrs) for xs, s in zip(given, samples, strict=True)]

    return every, [tuple(map(np.asarray, s.operands)) for s in samples]


def samples_of(op: Op) -> list[Sample]:
    """Those with elements, and a batch of matrices that libraries factor at once."""
    samples = [s for s in op.samples() if all(np.size(x) for x in s.operands)]
    if op.name in ("order_of_rows", "tridiagonal_solve"):
        return samples
    batch = positive_definite(5, np.float64, (3, 3))
    others = {"triangular_solve": (batch[..., :2],), "pinv": (np.full((3, 3, 1, 1), 1e-9),)}
    return [*samples, Sample((batch, *others.get(op.name, ())), samples[0].attrs)]


@each_case
@pytest.mark.skipif(COMPILER is None, reason="needs g++")
def test_kernels_give_what_the_reference_gives(
    op: Op, form: FactorizationForm, tmp_path: Any
) -> None:
    samples = samples_of(op)
    every, given = of_all(op, samples)
    with override(factorizations=form):
        plans = EmulatedPlans({"every": (every, (given,))}, tmp_path)
    found = plans.run("every", given, order=Random(0))
    for sample, results in zip(samples, found, strict=True):
        check(op, sample, lambda *_, results=results: results)


@each_case
def test_kernels_compile(op: Op, form: FactorizationForm) -> None:
    """The front end checks those of all samples; there is machine code of some ops' first one."""
    samples = samples_of(op)
    with override(factorizations=form):
        assert_front_end_accepts(lowered(*of_all(op, samples), device="cuda").source)
        if op.name in ("lu", "qr", "svd"):
            one = lowered(*of_all(op, samples[:1]), device="cuda")
            assert len(cubin(one.source, "sm_90").code) > 0
