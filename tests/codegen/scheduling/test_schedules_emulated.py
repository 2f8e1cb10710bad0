"""Predicated branches and unrolled loops, as generated CUDA C++ that runs on the CPU."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import tracegraph
from lowering.codegen import unit_source
from lowering.plan.nests.kernel import (
    Accumulator,
    MapNest,
    Nest,
    Pass,
    Predicate,
    ReduceNest,
    RowNest,
    ScanNest,
    ScatterNest,
)
from lowering.plan.nodes import KernelNode
from tests.cases.kernels.by_hand import axes, buffer, load, node, plan, store
from tests.corpus import CASES
from tests.emulation.emulator import COMPILER, Emulator, Memory
from tests.emulation.plan_emulator import EmulatedPlans
from tests.helpers.devices import Device
from tests.helpers.forced import BRANCHING, FORCED, scheduled
from tests.helpers.running import assert_case_agrees, eager
from tests.programs.printing import nests, outcome
from tracegraph.ir.combiners import ADD
from tracegraph.ir.scalar import const
from tracegraph.ir.scalar_values import Accumulated
from tracegraph.testing import assert_traced_equals_eager, programs

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")

BATCH = 10
"""Programs that are compiled together; shrinking would compile each candidate."""


WAYS = ("both", "one_kernel", "per_lane", "cluster", "grid")
"""Schedules as estimated are those of `test_corpus_emulated`."""
NAMES = list(BRANCHING)[::2]
PROGRAMS = {name: (CASES[name].function, CASES[name].arguments) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_corpus_programs_give_what_numpy_gives(name: str, device: Device) -> None:
    def run(function: Any, *arguments: Any) -> Any:
        return device.run(name, *arguments, order=Random(name))

    assert_case_agrees(CASES[name], run)


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=2, phases=[Phase.generate])
@given(batch=st.lists(programs(), min_size=BATCH, max_size=BATCH))
def test_random_programs_give_what_numpy_gives(way: str, batch: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        named = {str(n): (p.function, p.arguments) for n, p in enumerate(batch)}
        plans = EmulatedPlans(named, Path(folder), partial(scheduled, chosen=FORCED[way]))
        for name, program in enumerate(batch):

            def run(function: Any, *arguments: Any) -> Any:
                return plans.run(str(name), *arguments, order=Random(0))  # noqa: B023

            assert_traced_equals_eager(
                program.function, *program.arguments, ulps=0, ways={"emulated": run}
            )


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=2, phases=[Phase.generate])
@given(batch=st.lists(st.tuples(nests(), st.integers(0, 7)), min_size=BATCH, max_size=BATCH))
def test_prints_and_failures_are_those_of_the_eager_run(way: str, batch: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        named = {str(n): (function, (np.int64(x),)) for n, (function, x) in enumerate(batch)}
        plans = EmulatedPlans(named, Path(folder), partial(scheduled, chosen=FORCED[way]))
        for name, (function, x) in enumerate(batch):

            def run(function: Any, x: Any) -> Any:
                return plans.run(str(name), x, order=Random(0))  # noqa: B023

            wanted, result = outcome(eager, function, np.int64(x))
            text, found = outcome(run, function, np.int64(x))
            assert found == result
            if isinstance(result, str):  # a graph runs on, and reports its failure at the end
                assert text.startswith(wanted)
            else:
                assert text == wanted


def doubling(x: Any, n: Any) -> Any:
    """One kernel of many blocks that updates in place, and decides whether the loop goes on."""
    return tracegraph.while_loop(lambda c: c[1] < n, lambda c: (c[0] * 2, c[1] + 1), (x, 0))


def test_no_block_sees_what_another_decides_in_the_same_launch(tmp_path: Path) -> None:
    x = np.ones(5000)
    named = {"doubling": (doubling, (x, 3))}
    plans = EmulatedPlans(named, tmp_path, partial(scheduled, chosen=FORCED["unrolled"]))
    for seed in range(4):
        for n in range(8):
            result, steps = plans.run("doubling", x, np.int64(n), order=Random(seed))
            assert steps == n
            np.testing.assert_array_equal(result, x * 2.0**n)


def smoothing(x: Any, n: Any) -> Any:
    """One kernel of many blocks that reads what it may not write, and a chain of two carries."""

    def body(i: Any, c: Any) -> Any:
        return np.roll(c[0], 1) + c[1][::-1], c[0], c[3], c[2] + i

    return tracegraph.fori_loop(0, n, body, (x, x * 2, x * 3, x * 4))


def test_no_block_sees_what_the_next_copy_of_a_body_writes(tmp_path: Path) -> None:
    x = np.arange(5000.0)
    known: Any = {f"known_{n}": (lambda x, n=n: smoothing(x, n), (x,)) for n in (3, 6, 7, 12)}
    named = {"any": (smoothing, (x, 3)), **known}
    plans = EmulatedPlans(named, tmp_path, partial(scheduled, chosen=FORCED["unrolled"]))
    for name, (function, _) in known.items():
        result = plans.run(name, x, order=Random(name))
        np.testing.assert_array_equal(result, function(x))
    for n in range(8):
        result = plans.run("any", x, np.int64(n), order=Random(n))
        np.testing.assert_array_equal(result, smoothing(x, n))


# -- every kind of nest ------------------------------------------------------------------------

N, M = 19200, 64
X, Y, TOTAL = buffer("float64", N), buffer("float64", N), buffer("float64")
ROWS, NORMED = buffer("float64", M, N // M), buffer("float64", M, N // M)
GO, CHOICE = buffer("bool"), buffer("int64")
(I,) = axes(N)
R, C = axes(M, N // M)
GUARDS = (Predicate(GO, True), Predicate(CHOICE, 2))
SUM = Accumulated.make(0, np.dtype(np.float64))
NESTS: dict[str, Nest] = {
    "map": MapNest((N,), (store(Y, (I,), load(X, I)),), (), GUARDS),
    "reduce": ReduceNest(
        (), (N,), (Accumulator(ADD, load(X, I)),), (store(TOTAL, (), SUM),), (), GUARDS
    ),
    "rows": RowNest(
        (M,),
        (N // M,),
        (
            Pass((Accumulator(ADD, load(ROWS, R, C)),), ()),
            Pass((), (store(NORMED, (R, C), SUM),)),
        ),
        (),
        (),
        GUARDS,
    ),
    "scan": ScanNest((N,), 0, ADD, store(Y, (I,), load(X, I)), GUARDS),
    "scatter": ScatterNest((N,), 1, None, store(Y, (I,), load(X, I)), GUARDS),
}
TARGETS = {"reduce": TOTAL, "rows": NORMED}


OTHER = MapNest(
    (N,), (store(Y, (I,), const(7.0, np.dtype(np.float64))),), (), (Predicate(GO, False),)
)
NODES = {
    **{name: node(name, nest) for name, nest in NESTS.items()},
    **{f"{name}_or_7": node(f"{name}_or_7", NESTS[name], OTHER) for name in ("map", "scan")},
}
"""Each nest alone, and beside one that stores to the same memory where the flag is false."""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> tuple[Emulator, dict[str, KernelNode]]:
    unit = unit_source(plan(*NODES.values()))
    return Emulator(unit, tmp_path_factory.mktemp("nests")), NODES


def run(kernels: Any, name: str, go: bool, choice: int) -> Any:
    emulator, nodes = kernels
    memory = Memory()
    for source in (X, ROWS):
        memory.put(source, np.ones(source.type.shape))
    memory.put(GO, go)
    memory.put(CHOICE, choice)
    target = TARGETS.get(name, Y)
    memory.put(target, np.zeros(target.type.shape))
    count = emulator.code(nodes[name]).grid[0]
    order = Random(name).sample(range(count), count)
    return emulator.run(nodes[name], memory, order)[target]


@pytest.mark.parametrize("name", NESTS)
def test_a_nest_runs_only_if_all_predicates_hold(name: str, kernels: Any) -> None:
    for go, choice in [(False, 2), (True, 1), (False, 3)]:
        assert not run(kernels, name, go, choice).any()
    assert run(kernels, name, True, 2).all()


def test_a_split_reduction_that_was_skipped_works_the_next_time(kernels: Any) -> None:
    assert kernels[0].code(kernels[1]["reduce"]).grid[0] > 1
    for go in (True, False, True, False, False, True):
        assert run(kernels, "reduce", go, 2) == (N if go else 0)


@pytest.mark.parametrize("name", ["map", "scan"])
def test_of_two_nests_in_one_launch_the_one_whose_predicate_holds_runs(
    name: str, kernels: Any
) -> None:
    assert (run(kernels, f"{name}_or_7", False, 2) == 7).all()
    wanted = np.ones(N) if name == "map" else np.arange(1.0, N + 1)
    np.testing.assert_array_equal(run(kernels, f"{name}_or_7", True, 2), wanted)
