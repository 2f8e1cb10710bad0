"""The kernels that select: they compile for GPUs, and run on the CPU they find what a sort does."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from lowering.cuda.compilation.compile import cubin
from lowering.legalization.legalize import legalize
from lowering.plan.selection import SelectionNode
from lowering.plan.target.features import Features
from tests.cases.sorting import DTYPES, values
from tests.emulation.emulator import COMPILER
from tests.emulation.front_end import assert_front_end_accepts
from tests.emulation.plan_emulator import EmulatedPlans
from tests.helpers.compiled import plan_of
from tests.helpers.plans import nodes_of
from tests.helpers.running import lowered
from tracegraph.arrays.eager import apply
from tracegraph.ops.largest import largest

emulated = pytest.mark.skipif(COMPILER is None, reason="needs g++")

CASES = {
    "one": ((1,), 1),
    "all": ((40,), 40),
    "a tile": ((128,), 5),
    "rows": ((3, 5, 300), 7),
    "threads": ((2, 1500), 256),
    "a tile of them": ((3000,), 512),
    "many tiles": ((2, 9000), 10),
    "parts": ((20_000,), 3),
    "parts of rows": ((2, 13_001), 50),
    "parts of parts": ((40_000,), 1000),
}
"""Shapes and counts, on both sides of a tile, of a block's threads and of a part."""


def finding(count: int) -> Any:
    def find(x: Any) -> Any:
        return apply(largest, x, count=count)

    return find


def wanted(x: np.ndarray[Any, Any], count: int) -> np.ndarray[Any, Any]:
    """The first of the sorted positions."""
    return np.asarray(tnp.argsort(x, descending=True))[..., :count]


def check(cases: dict[str, tuple[np.ndarray[Any, Any], int]], folder: Path) -> None:
    programs = {name: (finding(count), (x,)) for name, (x, count) in cases.items()}
    plans = EmulatedPlans(programs, folder)
    for name, (x, count) in cases.items():
        found = np.asarray(plans.run(name, x, order=Random(1)))
        np.testing.assert_array_equal(found, wanted(x, count), err_msg=name)
        assert found.dtype == np.int64


@emulated
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_largest_are_those_of_a_sort(dtype: Any, tmp_path: Path) -> None:
    # all cases of each are selected on a GPU
    names = CASES if dtype == np.float32 else ("all", "threads", "parts")
    check({name: (values(dtype, CASES[name][0]), CASES[name][1]) for name in names}, tmp_path)


@emulated
def test_rows_in_any_order(tmp_path: Path) -> None:
    """All equal, rising, falling, missing, with the largest at the end of a tile."""
    n = 5000
    rows = {
        "equal": np.zeros(n),
        "zeros": np.tile([0.0, -0.0], n // 2),
        "rising": np.arange(n) / 7,
        "falling": -np.arange(n) / 7,
        "missing": np.full(n, np.nan),
        "few missing": np.where(np.arange(n) % 1999 == 1998, np.nan, 1.0),
        "steps": np.floor(np.arange(n) / 1024),
        "waves": np.arange(n) % 1024 + 0.5,
    }
    cases = {f"{name} {k}": (row, k) for name, row in rows.items() for k in (1, 20, 300)}
    check(cases, tmp_path)


@emulated
def test_selections_in_loops_and_branches(tmp_path: Path) -> None:
    def steps(x: Any) -> Any:
        def step(i: Any, carry: Any) -> Any:
            x, total = carry
            best, places = tnp.top_k(x, 6)
            both = tracegraph.cond(i % 2 == 0, lambda: places, lambda: tnp.top_k(-x, 6)[1])
            return (x * 3 + best[0]) % 1009, total + both

        return tracegraph.fori_loop(0, 3, step, (x, np.zeros(6, np.int64)))

    x = values(np.int32, (9000,)) % 5000
    expected = tracegraph.jit(steps, device="host")(x)
    plans = EmulatedPlans({"steps": (steps, (x,))}, tmp_path)
    for found, value in zip(plans.run("steps", x, order=Random(3)), expected, strict=True):
        np.testing.assert_array_equal(found, value)


@emulated
def test_bodies_find_arguments_through_the_pointer_table(tmp_path: Path) -> None:
    def repeated(x: Any, n: Any) -> Any:
        return tracegraph.fori_loop(
            0, n, lambda i, total: total + apply(largest, x, count=9), np.zeros(9, np.int64)
        )

    x = values(np.int64, (9000,))
    plans = EmulatedPlans(
        {"repeated": (repeated, (x, 3))},
        tmp_path,
        planned=lambda stage: legalize(stage.lower().plan, Features(body_updates=False)),
    )
    np.testing.assert_array_equal(plans.run("repeated", x, 3), 3 * wanted(x, 9))


def source_of(dtypes: Any) -> str:
    """The kernels that select from short and long rows."""
    every = [values(dtype, (n,)) for dtype in dtypes for n in (20, 300, 20_000)]
    return lowered(lambda every: list(map(finding(7), every)), every, device="cuda").source


def test_kernels_of_all_dtypes_compile() -> None:
    assert_front_end_accepts(source_of(DTYPES))


@pytest.mark.parametrize(("arch", "dtypes"), [("sm_80", ["b1"]), ("sm_90", ["c8"])])
def test_there_is_machine_code_of_kernels(arch: str, dtypes: Any) -> None:
    assert len(cubin(source_of(dtypes), arch).code) > 0


def test_few_long_rows_are_divided() -> None:
    def parts(count: int, *extents: int) -> list[int]:
        plan = plan_of(lambda x: tnp.top_k(x, count), np.zeros(extents, np.float32))
        (node,) = nodes_of(plan, SelectionNode)
        assert len(node.graph_nodes) == len(node.shape.levels)
        return [parts for _, parts in node.shape.levels]

    assert parts(10, 2000, 20_000) == [1]
    assert parts(10, 100_000) == [24, 1]
    assert parts(10, 4, 1 << 22) == [132, 1]
    assert parts(200, 1 << 22) == [528, 25, 1]
    assert parts(10, 3000) == [1]


@emulated
def test_a_row_in_many_parts_is_sorted_unless_it_is_very_long(tmp_path: Path) -> None:
    x = values(np.int16, (300_000,))
    plan = plan_of(lambda x: tnp.top_k(x, 10), x)
    assert not nodes_of(plan, SelectionNode)
    assert nodes_of(plan_of(lambda x: tnp.top_k(x, 10), x[:260_000]), SelectionNode)
    assert nodes_of(plan_of(lambda x: tnp.top_k(x, 10), x, device="host"), SelectionNode)
    check({"sorted": (x, 10)}, tmp_path)


def test_many_of_a_row_and_few_in_all_are_sorted() -> None:
    plan = plan_of(lambda x: tnp.top_k(x, 257), np.zeros(3000))
    assert not nodes_of(plan, SelectionNode)
    plan = plan_of(lambda x: tnp.top_k(x, 3), np.zeros(2000))
    assert not nodes_of(plan, SelectionNode)
