"""Loops with a thread for each lane on the device: results, steps that differ, and stopping."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.plan.target.overrides import override
from tests.helpers.compiled import compiled_for
from tests.helpers.running import eager
from tests.programs.lanes import PROGRAMS
from tracegraph import fori_loop, tree, vmap, while_loop
from tracegraph.errors import StepLimitError, TimeLimitError


def per_lane(function: Any, *arguments: Any) -> tracegraph.Compiled:
    with override(loops="per_lane"):
        return compiled_for(function, *arguments)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_what_numpy_gives(name: str) -> None:
    function, arguments = PROGRAMS[name]
    run = per_lane(function, *arguments)
    assert "a thread for each" in run.explain()
    wanted = tree.leaves(eager(function, *arguments))
    for _ in range(3):
        for new, old in zip(tree.leaves(run(*arguments)), wanted, strict=True):
            np.testing.assert_allclose(np.asarray(new), np.asarray(old), 1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 31, 1000, 1 << 20])
def test_each_lane_makes_its_own_steps(n: int, dtype: str) -> None:
    """Collatz in floating point: some lanes make hundreds of steps, others none."""

    def steps(x: Any) -> Any:
        def step(s: Any) -> Any:
            x, k = s
            return np.where(x % 2 == 0, x / 2, 3 * x + 1), k + 1

        return while_loop(lambda s: s[0] > 1, step, (x, 0))[1]

    x = np.arange(1, n + 1).astype(dtype) % 997 + 1
    found = np.asarray(per_lane(vmap(steps), x)(x))
    wanted = {value: steps(value) for value in np.unique(x)}
    np.testing.assert_array_equal(found, [wanted[value] for value in x])


def test_the_time_limit_stops_it() -> None:
    x = np.ones(10_000)
    endless = per_lane(vmap(lambda x: while_loop(lambda x: x > -1, lambda x: x + 1, x)), x)
    start = time.perf_counter()
    with pytest.raises(TimeLimitError), tracegraph.time_limit(0.1):
        np.asarray(endless(x))
    assert time.perf_counter() - start < 10


def test_steps_are_limited() -> None:
    def limited(x: Any) -> Any:
        return while_loop(lambda x: x > 0, lambda x: x - 1, x, max_steps=7)

    run = per_lane(vmap(limited), np.ones(300))
    np.testing.assert_array_equal(np.asarray(run(np.arange(300.0) % 8)), np.zeros(300))
    with pytest.raises(StepLimitError):
        np.asarray(run(np.arange(300.0) % 9))


def test_values_that_lanes_share_are_those_of_all_steps() -> None:
    def run(x: Any, n: Any) -> Any:
        return fori_loop(0, n, lambda i, c: (c[0] * 0.5 + i, c[1] + i), (x, 0))

    x = np.ones(1 << 20)
    compiled = per_lane(run, x, np.int64(3))
    for n in (0, 1, 50):
        for new, old in zip(compiled(x, np.int64(n)), run(x, n), strict=True):
            np.testing.assert_allclose(np.asarray(new), np.asarray(old))
