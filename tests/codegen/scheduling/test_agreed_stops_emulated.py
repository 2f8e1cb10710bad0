"""Devices whose kernels exchange arrays agree about the step behind which they stop."""

from __future__ import annotations

from pathlib import Path
from threading import Timer

import numpy as np
import pytest

import tracegraph
from lowering.plan.target.overrides import override
from lowering.plan.target.scope import Scope
from tests.emulation.emulator import COMPILER
from tests.emulation.mesh_emulator import EmulatedMesh
from tests.gpu.sharding.mesh_ends import beside_own_loops, by_halos, by_sums
from tracegraph import Mesh
from tracegraph import PartitionSpec as P

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")

PAIR = Mesh(2, "x", device="cuda")


@pytest.mark.parametrize(
    ("fun", "loops", "small", "scope"),
    [
        (by_sums, "one_kernel", 4096, Scope(1, 64)),
        (by_halos, "one_kernel", 0, Scope(3, 32)),
        (beside_own_loops, "one_kernel", 4096, Scope(1, 1)),
        (by_sums, "unrolled", 4096, None),
        (by_halos, "unrolled", 0, None),
    ],
)
def test_all_stop_behind_the_same_step(
    fun, loops, small, scope, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loops in a kernel, or with exchanges that are kernels of their own."""
    monkeypatch.setattr("lowering.plan.calls.collectives.SMALL_BYTES", small)
    with override(loops=loops, scope=scope):
        mesh = EmulatedMesh(fun, PAIR, P("x"), P("x"), np.ones(8), folder=tmp_path)
    stops = [device.emulator.stop for device in mesh._devices]
    for number, seed in ((1, 0), (0, 7)):
        timer = Timer(0.1, stops[number].fill, (1,))
        timer.start()
        first, second = np.split(mesh(np.ones(8), seed=seed), 2)
        timer.join()
        stops[number].fill(0)
        assert first[0] > 0
        np.testing.assert_array_equal(first, second)


def test_extremes_are_nan_where_a_device_has_nan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folds = {"sum": np.add, "max": np.fmax, "min": np.fmin}  # as NCCL, which drops NaN
    monkeypatch.setattr("lowering.plan.calls.collectives._FOLDS", folds)
    x = np.array([1.0, np.nan, -np.inf, np.nan, 2.0, 3.0, np.inf, 5.0], np.float32)
    mesh = EmulatedMesh(
        lambda x: (tracegraph.pmax(x, "x"), tracegraph.pmin(x, "x")),
        *(PAIR, P("x"), P(), x),
        folder=tmp_path,
    )
    largest, smallest = mesh(x)
    np.testing.assert_array_equal(largest, np.maximum(*np.split(x, 2)))
    np.testing.assert_array_equal(smallest, np.minimum(*np.split(x, 2)))


def test_a_device_that_is_to_end_at_once_does_not_wait_for_others(tmp_path: Path) -> None:
    with override(loops="one_kernel", scope=Scope(1, 64)):
        mesh = EmulatedMesh(by_sums, PAIR, P("x"), P("x"), np.ones(8), folder=tmp_path)
    alone = mesh._devices[1]
    alone.emulator.stop.fill(2)
    (steps,) = alone.launch([np.ones(4)])
    assert steps[0] == 1
