"""Texts of modules: the same in every process, without addresses, and what bounds their size."""

from __future__ import annotations

import re

import numpy as np
import pytest

from lowering.native.compilation.compiler import compile
from lowering.native.module import modules_of
from lowering.native.parts import LARGEST, size_of_graph
from tests.corpus import CASES
from tests.helpers.processes import end_of
from tests.plan.native.running_natively import compiled, native_plan

FORBIDDEN = re.compile(
    r"\b(inttoptr|ptrtoint|reassoc|fast|contract|afn|arcp|nnan|ninf|nsz|llvm\.fmuladd)\b"
)
"""Addresses, and what lets LLVM change the bits of results."""


@pytest.mark.parametrize("name", list(CASES)[::2])
def test_no_text_has_addresses_or_lets_bits_change(name: str) -> None:
    case = CASES[name]
    for module in modules_of(native_plan(case.function, *case.arguments)).modules:
        assert not FORBIDDEN.findall(module.joined().replace("__fast", ""))


SCRIPT = """
import hashlib
from lowering.native.module import modules_of
from tests.corpus import CASES
from tests.plan.native.running_natively import native_plan
for name in sorted(CASES)[::6]:
    case = CASES[name]
    modules = modules_of(native_plan(case.function, *case.arguments)).modules
    text = "".join(module.joined() for module in modules)
    print(name, hashlib.sha256(text.encode()).hexdigest())
"""


def test_two_processes_write_the_same_texts() -> None:
    first, second = (end_of(SCRIPT, PYTHONHASHSEED=seed) for seed in ("1", "2"))
    assert first[0] == 0, first[2]
    assert first[1].count("\n") > 30
    assert first[1] == second[1]


def many_steps(count: int, kind: str):
    def function(x):
        for number in range(count):
            if kind == "scans":
                x = np.cumsum(x * (number + 1.5)) / (number + 2)
            else:
                x = x * (1.5 / (1 + (x * x).sum()))
        return x

    return function


@pytest.mark.parametrize("kind", ["scans", "sums"])
def test_modules_of_large_plans_have_bounded_sizes(kind: str) -> None:
    x = np.linspace(0, 1, 40)
    numbers, longest, lengths = [], [], []
    for count in (200, 400, 800):
        texts = [m.joined() for m in modules_of(native_plan(many_steps(count, kind), x)).modules]
        numbers.append(len(texts))
        longest.append(max(map(len, texts[1:])))
        lengths.append(sum(map(len, texts)))
    assert numbers[0] > 3
    assert numbers[2] < 4.4 * numbers[0]
    assert longest[2] < 1.1 * longest[0]  # registers have longer numbers
    assert lengths[2] < 4.4 * lengths[0]


@pytest.mark.parametrize("kind", ["scans", "sums"])
def test_large_plans_give_what_numpy_gives(kind: str) -> None:
    x = np.linspace(0, 1, 40)
    function = many_steps(120, kind)
    plan = native_plan(function, x)
    assert size_of_graph(plan.graph) > LARGEST
    np.testing.assert_allclose(compiled(plan)([x])[0], function(x), rtol=1e-12)


def test_loops_and_branches_larger_than_a_part_are_divided_inside() -> None:
    from tracegraph import cond, while_loop

    one, other = many_steps(70, "scans"), many_steps(60, "sums")

    def function(x):
        def step(state):
            y, count = state
            return cond(count % 2 == 0, one, other, y), count + 1

        return while_loop(lambda state: state[1] < 3, step, (x, 0))[0]

    x = np.linspace(0, 1, 40)
    plan = native_plan(function, x)
    modules = modules_of(plan).modules
    assert len(modules) > 3
    assert all(compile(module.joined(), "quick") for module in modules)
    wanted = one(other(one(x)))
    np.testing.assert_allclose(compiled(plan)([x])[0], wanted, rtol=1e-12)


def test_failures_in_a_part_end_the_run() -> None:
    import tracegraph

    function = many_steps(100, "scans")

    def checked(x, index):
        with tracegraph.check_indices():
            return function(x[index] + x) + function(x)

    x = np.linspace(0, 1, 40)
    plan = native_plan(checked, x, 3)
    assert len(modules_of(plan).modules) > 2
    executable = compiled(plan)
    np.testing.assert_allclose(executable([x, 3])[0], checked(x, 3), rtol=1e-12)
    with pytest.raises(IndexError):
        executable([x, 41])
