"""Executables whose loops the host drives run whole programs, with kernels on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lowering
from lowering.cuda.calls.executable import CudaExecutable
from lowering.testing.recording_backend import RecordingBackend
from tests.corpus import CASES
from tests.emulation.emulated_driver import EmulatedDriver
from tests.emulation.emulator import COMPILER
from tests.helpers.forced import FORCED, scheduled, unscheduled
from tests.helpers.running import assert_case_agrees, lowered
from tracegraph import debug, fori_loop, jit, tree, while_loop
from tracegraph.errors import StepLimitError, TimeLimitError
from tracegraph.limits import time_limit

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")

PROGRAMS = (
    *("captures_at_depth_three", "collatz_like", "condition_from_a_reduction"),
    *("inner_bound_from_device_memory", "loops_that_never_run"),
    *("rotated_duplicated_and_kept_carries", "scan_of_scans", "switch_on_2"),
)


def compiled(plan: Any, folder: Path) -> CudaExecutable:
    return RecordingBackend(EmulatedDriver(folder), lacks=["conditional_nodes"]).compile(plan)


SCHEDULED = ("captures_at_depth_three", "scan_of_scans", "switch_on_2")
"""Those that run with unrolled loops and predicated branches, too."""


@pytest.mark.parametrize(
    ("name", "way"),
    [*((name, None) for name in PROGRAMS), *((name, "both") for name in SCHEDULED)],
)
def test_result_is_that_of_numpy(name: str, way: str | None, tmp_path: Path) -> None:
    def run(function: Any, *arguments: Any) -> Any:
        stage = lowered(function, *arguments, device="cuda")
        plan = stage.plan if way is None else scheduled(stage, FORCED[way])
        executable = compiled(plan, tmp_path)
        leaves = tree.leaves(arguments)
        results = [buffer.to_host() for buffer in executable(leaves)]
        again = [buffer.to_host() for buffer in executable(leaves)]
        assert [x.tobytes() for x in results] == [x.tobytes() for x in again]
        return tree.unflatten(stage.traced.out_structure, results)

    assert_case_agrees(CASES[name], run)


def powers(x: Any, n: Any) -> Any:
    return fori_loop(0, n, lambda i, c: c * x, x)


def test_other_arguments_update_the_graphs_of_bodies(tmp_path: Path) -> None:
    x = np.arange(100.0)
    executable = compiled(lowered(powers, x, 3, device="cuda").plan, tmp_path)
    for n, base in ((3, x), (0, x + 1), (2, -x), (2, x)):
        (result,) = executable([base, n])
        np.testing.assert_array_equal(result.to_host(), base ** (n + 1))
    (squares,) = executable([x, 1])
    (moved,) = executable([squares, 1])
    np.testing.assert_array_equal(moved.to_host(), x**4)


def test_a_loop_that_the_time_limit_stopped_runs_again(tmp_path: Path) -> None:
    x = np.arange(100.0)
    executable = compiled(unscheduled(lowered(powers, x, 3, device="cuda")), tmp_path)
    executable([x, 3])
    with pytest.raises(TimeLimitError), time_limit(0.05):
        executable([x, 10**9])
    (result,) = executable([x, 2])
    np.testing.assert_array_equal(result.to_host(), x**3)


@pytest.mark.parametrize("way", [None, "both"])
def test_prints_progress_and_failures_reach_the_host(
    way: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reported: list[tuple[int, int | None]] = []

    def run(x: Any) -> Any:
        def body(x: Any) -> Any:
            debug.print("x = {}", x)
            return x * 2

        def note(step: int, total: int | None) -> None:
            reported.append((step, total))

        return while_loop(lambda x: x < 100, body, x, max_steps=5, progress=note)

    stage = lowered(run, 1, device="cuda")
    plan = stage.plan if way is None else scheduled(stage, FORCED[way])
    executable = compiled(plan, tmp_path)
    (result,) = executable([20])
    assert int(result.to_host()) == 160
    assert capsys.readouterr().out == "x = 20\nx = 40\nx = 80\n"
    assert reported[-1] == (3, None)
    (result,) = executable([1])
    with pytest.raises(StepLimitError, match="max_steps=5"):
        result.to_host()
    (result,) = executable([50])
    assert int(result.to_host()) == 100
    assert reported[-1] == (1, None)


def test_donated_carries_run_in_place_or_in_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = RecordingBackend(EmulatedDriver(tmp_path), lacks=["conditional_nodes"])
    monkeypatch.setattr(lowering, "backend", lambda _: backend)
    step = jit(powers, donate_argnums=0, device="cuda:0")
    x = step(np.arange(100.0), 1)
    address = x.data.pointer
    x = step(x, 1)
    assert x.data.pointer == address
    held, before = x.data, np.asarray(x)
    y = step(x, 0)
    y = step(y, 1)
    assert y.data.pointer != address
    np.testing.assert_array_equal(before, np.arange(100.0) ** 4)
    np.testing.assert_array_equal(held.to_host(), before)
    np.testing.assert_array_equal(np.asarray(y), before**2)
