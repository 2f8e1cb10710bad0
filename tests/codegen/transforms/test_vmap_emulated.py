"""Batched programs as generated CUDA C++ that runs on the CPU, in random orders of their nodes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.cases.vmap import VMAP_CASES
from tests.emulation.emulator import COMPILER
from tests.emulation.plan_emulator import EmulatedPlans
from tests.helpers.batching import (
    applied,
    assert_same,
    batched_samples,
    lane_by_lane,
    lanes_of,
    looped,
)
from tests.helpers.running import eager
from tracegraph import tree, vmap
from tracegraph.ir.op import Op, Sample, Scatter, all_ops
from tracegraph.testing import RandomProgram, programs

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")

SCATTERS = {
    f"{op.name}_{number}": (op, sample, axes)
    for op in all_ops()
    if isinstance(op.form, Scatter)
    for number, (sample, axes) in enumerate(batched_samples(op))
}


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> EmulatedPlans:
    """All of them in one unit."""
    cases = {
        name: (vmap(case.function, case.axes), case.arguments) for name, case in VMAP_CASES.items()
    }
    scatters = {
        name: (_applied(*scatter), scatter[1].operands) for name, scatter in SCATTERS.items()
    }
    return EmulatedPlans({**cases, **scatters}, tmp_path_factory.mktemp("plans"))


def _applied(op: Op, sample: Sample, axes: tuple[int | None, ...]) -> Any:
    return lambda *operands: applied(op, Sample(operands, sample.attrs), axes)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", VMAP_CASES)
def test_lanes_are_those_of_the_python_loop(name: str, seed: int, plans: EmulatedPlans) -> None:
    case = VMAP_CASES[name]
    found = plans.run(name, *case.arguments, order=Random(seed))
    with np.errstate(all="ignore"):
        assert_same(found, looped(case.function, *case.arguments, axes=case.axes))


@pytest.mark.parametrize("name", SCATTERS)
def test_writes_of_lanes_are_those_of_the_reference(name: str, plans: EmulatedPlans) -> None:
    op, sample, axes = SCATTERS[name]
    found = plans.run(name, *sample.operands, order=Random(0))
    assert_same(found, lane_by_lane(op, sample, axes))


@settings(max_examples=2, phases=[Phase.generate])
@given(batch=st.lists(programs(max_steps=5), min_size=12, max_size=12))
def test_lanes_of_random_programs(batch: list[RandomProgram]) -> None:
    arguments = [[lanes_of(x) for x in program.arguments] for program in batch]
    named = {
        str(n): (vmap(program.function), given)
        for n, (program, given) in enumerate(zip(batch, arguments, strict=True))
    }
    with tempfile.TemporaryDirectory() as folder:
        plans = EmulatedPlans(named, Path(folder))
        for n, (program, given) in enumerate(zip(batch, arguments, strict=True)):
            found = plans.run(str(n), *given, order=Random(n))
            alone = looped(lambda *args, f=program.function: eager(f, *args), *given)
            assert_same(tree.map(np.asarray, tuple(found)), alone)
