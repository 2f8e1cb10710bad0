"""Bodies of thousands of equations: no stage recurses over them, however deep the call is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph as tg
from lowering.codegen import unit_source
from lowering.host.executable import HostExecutable
from tests.helpers.forced import FORCED, scheduled
from tests.helpers.running import lowered
from tracegraph import tree

EQUATIONS = 2000
FRAMES = 400
"""Frames of the caller's: of the thousand that Python allows, test runners take some more."""


def called_deep(function: Callable[[], Any], frames: int = FRAMES) -> Any:
    return called_deep(function, frames - 1) if frames else function()


def long(c: Any) -> Any:
    for _ in range(EQUATIONS):
        c = c * 1.001
    return c


def in_a_row(x: Any) -> Any:
    return long(x)


def in_a_counted_loop(x: Any) -> Any:
    return tg.fori_loop(0, 3, lambda i, c: long(c), x)


def in_a_loop(x: Any) -> Any:
    return tg.while_loop(lambda c: np.sum(c) < 1e3, long, x)


def in_a_condition_of_a_loop(x: Any) -> Any:
    return tg.while_loop(lambda c: np.sum(long(c)) < 1e3, lambda c: c * 2.0, x)


def in_a_branch(x: Any) -> Any:
    return tg.cond(np.sum(x) > 0, long, lambda c: c, x)


def in_a_branch_in_a_loop(x: Any) -> Any:
    return tg.fori_loop(0, 3, lambda i, c: tg.cond(i > 0, long, np.negative, c), x)


def in_a_scan(x: Any) -> Any:
    def step(c: Any, row: Any) -> Any:
        c = long(c + row)
        return c, c

    return tg.scan(step, x, np.arange(3.0))


PROGRAMS = (
    in_a_row,
    in_a_counted_loop,
    in_a_loop,
    in_a_condition_of_a_loop,
    in_a_branch,
    in_a_branch_in_a_loop,
    in_a_scan,
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_body_of_thousands_of_equations_is_planned_run_and_printed(
    program: Callable[[Any], Any],
) -> None:
    x = np.full(8, 0.5)
    expected = tree.leaves(program(x))

    def check() -> None:
        stage = lowered(program, x)
        assert stage.explain()
        for plan in (stage.plan, scheduled(stage, FORCED["both"])):
            found = HostExecutable(plan, poison=True)([x])
            for got, wanted in zip(found, expected, strict=True):
                np.testing.assert_array_equal(got, wanted)
            assert unit_source(plan)
            assert "multiply" in str(plan)

    called_deep(check)
