"""The kernels that sort: they compile for GPUs, and run on the CPU they sort as NumPy does."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.cuda.compilation.compile import cubin
from lowering.legalization.legalize import legalize
from lowering.plan.target.features import Features
from lowering.testing.recording_backend import RecordingBackend
from tests.cases.sorting import DTYPES, LENGTHS, in_order, order_of, values
from tests.emulation.emulated_driver import EmulatedDriver
from tests.emulation.emulator import COMPILER
from tests.emulation.front_end import assert_front_end_accepts
from tests.emulation.plan_emulator import EmulatedPlans
from tests.helpers.forced import FORCED, scheduled
from tests.helpers.running import lowered
from tracegraph.arrays.eager import apply
from tracegraph.ops.sorting import argsort, sort

emulated = pytest.mark.skipif(COMPILER is None, reason="needs g++")


def both(x: Any) -> tuple[Any, Any]:
    return apply(sort, x), apply(argsort, x)


def check(found: Any, x: np.ndarray[Any, Any]) -> None:
    ordered, order = map(np.asarray, found)
    np.testing.assert_array_equal(order, order_of(x))
    assert order.dtype == np.int64
    assert ordered.tobytes() == in_order(x).tobytes()


@emulated
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_all_lengths_are_sorted_stably(dtype: Any, tmp_path: Path) -> None:
    # all lengths of each are sorted on a GPU
    lengths = LENGTHS if dtype == np.float32 else (1, 33, 513, 2049)
    arrays = {str(n): values(dtype, (n,), seed=n) for n in lengths}
    plans = EmulatedPlans({name: (both, (x,)) for name, x in arrays.items()}, tmp_path)
    for name, x in arrays.items():
        check(plans.run(name, x), x)
        check(plans.run(name, x, order=Random(1)), x)


@emulated
@pytest.mark.parametrize("dtype", [np.float32, np.int64], ids=["float32", "int64"])
def test_rows_are_sorted_one_by_one(dtype: Any, tmp_path: Path) -> None:
    shapes = ((50, 7), (3, 4, 40), (5, 1000), (3, 7000), (2, 13_000))
    arrays = {str(shape): values(dtype, shape) for shape in shapes}
    plans = EmulatedPlans({name: (both, (x,)) for name, x in arrays.items()}, tmp_path)
    for name, x in arrays.items():
        check(plans.run(name, x, order=Random(2)), x)


@emulated
def test_equal_keys_stay(tmp_path: Path) -> None:
    x = np.zeros(15_000, np.float32)
    plans = EmulatedPlans({"equal": (both, (x,))}, tmp_path)
    for value in (0.0, -0.0, np.nan, 7.5):
        x[...] = value
        check(plans.run("equal", x), x)


def steps(x: Any) -> Any:
    """Sorts in a loop, in a branch of it, and of a part of an array."""

    def step(i: Any, carry: Any) -> Any:
        x, total = carry
        ordered = apply(sort, x)
        where = tracegraph.cond(i % 2 == 0, lambda: apply(argsort, x), lambda: apply(argsort, -x))
        return (ordered[::-1] * 3 + i) % 1009, total + where

    x, total = tracegraph.fori_loop(0, 3, step, (x, np.zeros(x.shape, np.int64)))
    return x, total, apply(sort, x[5:])


LOOPED = {n: values(np.int32, (n,), seed=n) % 5000 for n in (20, 300, 9000)}


@emulated
@pytest.mark.parametrize(("n", "way"), [*((n, None) for n in LOOPED), (20, "both"), (300, "both")])
def test_sorts_in_loops_and_branches(n: int, way: str | None, tmp_path: Path) -> None:
    """Also in steps that are unrolled, and where branches may be predicated."""
    x = LOOPED[n]
    expected = tracegraph.jit(steps, device="host")(x)
    options = {} if way is None else {"planned": lambda stage: scheduled(stage, FORCED[way])}
    plans = EmulatedPlans({"steps": (steps, (x,))}, tmp_path, **options)
    for order in (None, Random(3)) if n < 9000 else (Random(3),):
        for found, wanted in zip(plans.run("steps", x, order=order), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


@emulated
def test_bodies_find_arguments_through_the_pointer_table(tmp_path: Path) -> None:
    """Where a driver cannot give nodes in bodies new addresses."""

    def repeated(x: Any, n: Any) -> Any:
        return tracegraph.fori_loop(0, n, lambda i, total: total + apply(argsort, x), 0 * x)

    x = values(np.int64, (9000,))
    without = Features(body_updates=False)
    plans = EmulatedPlans(
        {"repeated": (repeated, (x, 3))},
        tmp_path,
        planned=lambda stage: legalize(stage.lower().plan, without),
    )
    np.testing.assert_array_equal(plans.run("repeated", x, 3), 3 * order_of(x))


@emulated
def test_a_graph_of_sorts_runs_again_and_again(tmp_path: Path) -> None:
    """Counters are cleared by each launch; arguments and results move."""
    arrays = [values(np.float32, (9000,), seed) for seed in range(3)]
    plan = lowered(both, arrays[0], device="cuda").plan
    executable = RecordingBackend(EmulatedDriver(tmp_path)).compile(plan)
    for x in arrays:
        check([buffer.to_host() for buffer in executable([x])], x)


def source_of(dtypes: Any) -> str:
    """The kernels that sort short and long arrays."""
    every = [values(dtype, (n,)) for dtype in dtypes for n in (20, 300, 9000)]
    return lowered(lambda every: list(map(both, every)), every, device="cuda").source


def test_kernels_of_all_dtypes_compile() -> None:
    assert_front_end_accepts(source_of(DTYPES))


@pytest.mark.parametrize(("arch", "dtypes"), [("sm_80", ["b1"]), ("sm_90", ["c8"])])
def test_there_is_machine_code_of_kernels(arch: str, dtypes: Any) -> None:
    assert len(cubin(source_of(dtypes), arch).code) > 0


def test_passes_share_a_kernel() -> None:
    source = lowered(both, values(np.float64, (9000,)), device="cuda").source
    assert source.count("tg_sort_pass<") == 2  # of sort and argsort
    assert source.count("tg_count_digits<") == 1
