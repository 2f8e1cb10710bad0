"""Every program of the corpus as native code gives what NumPy gives."""

from __future__ import annotations

from functools import partial
from itertools import cycle
from random import Random
from typing import Any

import numpy as np
import pytest

from lowering.native.compilation.compiler import Level
from tests.corpus import CASES
from tests.helpers.agreement import assert_agrees
from tests.helpers.running import assert_case_agrees, eager
from tests.plan.native.running_natively import compiled, native, native_plan
from tracegraph import tree

LEVELS: tuple[Level, ...] = ("quick", "quick", "full")
"""Full code takes longer to compile: every third program has it."""


@pytest.mark.parametrize(("name", "level"), [*zip(CASES, cycle(LEVELS), strict=False)])
def test_the_corpus_agrees(name: str, level: Level) -> None:
    assert_case_agrees(CASES[name], partial(native, level=level))


@pytest.mark.parametrize("name", sorted(CASES)[::8])
def test_donated_arguments_are_overwritten_and_nodes_run_in_any_order(name: str) -> None:
    case = CASES[name]
    plan = native_plan(case.function, *case.arguments, donated=range(len(case.arguments)))
    leaves = [np.array(leaf) for leaf in tree.leaves(case.arguments)]
    found: list[Any] = list(compiled(plan, Random(0))(leaves))
    wanted = tree.leaves(eager(case.function, *case.arguments))
    for got, expected in zip(found, wanted, strict=True):
        assert_agrees(np.asarray(got), np.asarray(expected), case.ulps)
