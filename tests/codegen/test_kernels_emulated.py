"""Generated kernels, run on the CPU, give what NumPy gives."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from lowering.codegen import Unit, unit_source
from lowering.plan.nests.kernel import Accumulator, MapNest, Pass, RowNest
from tests.cases.kernels import folds as fold_cases  # adds its cases
from tests.cases.kernels import maps as map_cases  # noqa: F401 - adds its cases
from tests.cases.kernels import rows as row_cases  # noqa: F401 - adds its cases
from tests.cases.kernels.by_hand import axes, buffer, load, node, plan, store
from tests.cases.kernels.case import CASES, Case
from tests.emulation.emulator import COMPILER, BarrierError, Emulator, Memory
from tracegraph.ir.combiners import MAXIMUM

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")

UNIT = unit_source(plan(*(case.node for case in CASES.values())))


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Emulator:
    return Emulator(UNIT, tmp_path_factory.mktemp("kernels"))


def memory_of(case: Case, shift: int = 0, apart: int = 0) -> Memory:
    memory = Memory(shift, apart)
    for place, array in case.given.items():
        memory.put(place, array)
    return memory


def assert_close(found: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    expected = np.asarray(expected)
    if tolerance == 0.0:
        kind = np.complex128 if found.dtype.kind == "c" else np.float64
        exact = found.dtype.kind not in "fcV"
        np.testing.assert_array_equal(
            *((found, expected) if exact else (found.astype(kind), expected.astype(kind)))
        )
        if found.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
        return
    size = np.abs(expected).max(initial=1.0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * size * 8)


@pytest.mark.parametrize("name", CASES)
def test_kernel_gives_what_numpy_gives(name: str, emulator: Emulator) -> None:
    assert_case(CASES[name], emulator)


def assert_case(case: Case, emulator: Emulator, shift: int = 0, apart: int = 0) -> None:
    found = emulator.run(case.node, memory_of(case, shift, apart))
    for place, expected in case.expected.items():
        assert_close(found.get(place, np.zeros(place.type.shape)), expected, case.tolerance)
    for place in case.given.keys() - case.expected.keys() & found.keys():
        given = np.asarray(case.given[place], place.type.dtype)
        assert found[place].tobytes() == given.tobytes(), f"{place} was only to be read"
    assert {c: emulator.conditions[c] for c in case.conditions} == case.conditions


CLUSTERED = [name for name, case in CASES.items() if UNIT.kernels[case.node].cluster > 1]


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Emulator:
    return Emulator(UNIT, tmp_path_factory.mktemp("older"), clusters=False)


@pytest.mark.parametrize("name", CLUSTERED)
def test_rows_of_clusters_are_one_blocks_where_there_are_none(name: str, older: Emulator) -> None:
    assert_case(CASES[name], older)


def test_clusters_of_several_sizes_are_among_the_cases() -> None:
    assert {UNIT.kernels[CASES[name].node].cluster for name in CLUSTERED} >= {2, 4, 8}


@pytest.mark.parametrize("columns", [20, 100, 3000, 30_000])
def test_all_lanes_know_the_same_zero(columns: int, tmp_path: Path) -> None:
    """The largest of zeros of both signs has one of the signs, everywhere in its row."""
    x, out = buffer("float32", 3, columns), buffer("float32", 3, columns)
    i, j = axes(3, columns)
    largest = Pass((Accumulator(MAXIMUM, load(x, i, j)),), ())
    stored = Pass((), (store(out, (i, j), fold_cases.accumulated(0, "float32")),))
    rows = node("zeros", RowNest((3,), (columns,), (largest, stored), ()))
    memory = Memory()
    signs = np.random.default_rng(columns).choice([-0.0, 0.0], (3, columns))
    memory.put(x, signs)
    found = Emulator(unit_source(plan(rows)), tmp_path).run(rows, memory)[out]
    assert (found == 0).all()
    assert (np.signbit(found) == np.signbit(found[:, :1])).all()


SPLIT = [name for name, case in CASES.items() if UNIT.kernels[case.node].workspace_bytes]


@pytest.mark.parametrize("name", SPLIT)
def test_results_are_the_same_in_any_order_of_blocks(name: str, emulator: Emulator) -> None:
    case = CASES[name]
    blocks = list(range(emulator.code(case.node).grid[0]))
    first = emulator.run(case.node, memory_of(case))
    random.Random(1).shuffle(blocks)
    for order in (blocks, blocks[::-1]):
        again = emulator.run(case.node, memory_of(case), order)
        for place in case.expected:
            assert again[place].tobytes() == first[place].tobytes()


def test_split_reductions_of_rows_columns_and_everything_are_among_the_cases() -> None:
    kept = {"sum_float64_10x9000_keeps_0", "sum_float64_3000x40_keeps_1"}
    assert kept | {"sum_float32_50000_keeps_none"} <= set(SPLIT)


def test_emulator_sees_a_write_out_of_bounds(tmp_path: Path) -> None:
    x, out = buffer("float32", 4), buffer("float32", 4)
    (i,) = axes(4)
    wrong = node("wrong", MapNest((4,), (store(out, (i + 1,), load(x, i)),)))
    memory = Memory()
    memory.put(x, np.ones(4))
    with pytest.raises(AssertionError, match="past its end"):
        Emulator(unit_source(plan(wrong)), tmp_path).run(wrong, memory)


def edited(unit: Unit, old: str, new: str) -> Unit:
    """A unit with other text in its functions."""
    functions = {name: text.replace(old, new) for name, text in unit.functions.items()}
    return Unit(functions, unit.kernels)


def test_emulator_sees_a_barrier_that_some_threads_skip(tmp_path: Path) -> None:
    out = buffer("int64", 40)
    (i,) = axes(40)
    good = node("good", MapNest((40,), (store(out, (i,), i),)))
    unit = unit_source(plan(good))
    broken = edited(unit, "p0[point]", "__syncthreads(); p0[point]")
    with pytest.raises(BarrierError, match="good"):
        Emulator(broken, tmp_path).run(good, Memory())


def test_emulator_sees_an_exchange_that_some_lanes_skip(tmp_path: Path) -> None:
    out = buffer("int64", 40)
    (i,) = axes(40)
    good = node("good", MapNest((40,), (store(out, (i,), i),)))
    unit = unit_source(plan(good))
    exchange = "__shfl_sync(~0u, 0, 0); p0[point]"  # by 40 threads: 8 wait for a whole warp
    broken = edited(unit, "p0[point]", exchange)
    with pytest.raises(BarrierError, match="good"):
        Emulator(broken, tmp_path).run(good, Memory())
