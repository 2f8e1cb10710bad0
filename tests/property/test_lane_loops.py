"""Random loops whose lanes never meet give the same in whatever way they run."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from lowering.plan.target.overrides import Choices, override
from tests.emulation.emulator import COMPILER
from tests.emulation.plan_emulator import EmulatedPlans
from tests.helpers.compiled import host_jit
from tests.helpers.forced import FORCED, on_host, scheduled
from tests.helpers.running import eager
from tests.programs.random_lanes import lane_loops
from tracegraph import tree

Drawn = tuple[Callable[..., Any], tuple[Any, ...]]

PER_LANE = Choices(loops="per_lane")
BATCH = 8
"""Loops that are compiled together."""


def assert_same(found: Any, wanted: Any) -> None:
    for new, old in zip(tree.leaves(found), tree.leaves(wanted), strict=True):
        np.testing.assert_array_equal(np.asarray(new), np.asarray(old))


@pytest.mark.parametrize("way", FORCED)
@given(drawn=lane_loops())
def test_every_schedule_gives_what_plain_python_gives(way: str, drawn: Drawn) -> None:
    function, arguments = drawn
    assert_same(on_host(FORCED[way])(function, *arguments), eager(function, *arguments))


@pytest.mark.usefixtures("each_host")
@given(drawn=lane_loops())
def test_each_host_gives_what_plain_python_gives(drawn: Drawn) -> None:
    function, arguments = drawn
    wanted = eager(function, *arguments)
    assert_same(host_jit(function)(*arguments), wanted)
    with override(PER_LANE):
        assert_same(host_jit(function)(*arguments), wanted)


@settings(max_examples=3, phases=[Phase.generate])
@given(batch=st.lists(lane_loops(), min_size=BATCH, max_size=BATCH))
@pytest.mark.skipif(COMPILER is None, reason="needs g++")
def test_threads_of_lanes_give_what_plain_python_gives(batch: list[Drawn]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        named = {str(n): drawn for n, drawn in enumerate(batch)}
        plans = EmulatedPlans(named, Path(folder), partial(scheduled, chosen=PER_LANE))
        for name, (function, arguments) in named.items():
            found = plans.run(name, *arguments, order=Random(0))
            assert_same(found, eager(function, *arguments))
