"""Kernels whose first blocks exchange what devices need, and compute the points that read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import tracegraph
from lowering.plan.nodes import launched
from lowering.plan.persistent_kernel import PersistentKernelNode
from lowering.plan.reports.races import races
from lowering.plan.target.overrides import override
from tests.codegen.scheduling.test_peers_emulated import form_of_all
from tests.emulation.emulator import COMPILER
from tests.emulation.mesh_emulator import EmulatedMesh
from tracegraph import Mesh, shard
from tracegraph import PartitionSpec as P

emulated = pytest.mark.skipif(COMPILER is None, reason="needs g++")

F32 = np.float32


def repeated(step: Any, times: int = 4) -> Any:
    """A loop, whose state is a tuple of arrays."""
    return lambda *state: tracegraph.fori_loop(0, times, lambda _, s: step(*s), state)


def heat(u: Any) -> Any:
    """On a torus, whose rows are divided."""
    above, below = tracegraph.halo(u, "x")
    rows = np.concatenate([above, u, below])
    across = np.roll(u, 1, 1) + np.roll(u, -1, 1)
    return (u + F32(0.2) * (rows[:-2] + rows[2:] + across - 4 * u),)


def line(u: Any) -> Any:
    """Two neighbours on each side, and nothing beyond the ends."""
    left, right = tracegraph.halo(u, "x", width=2, boundary=0.0)
    wide = np.concatenate([left, u, right])
    return (F32(0.3) * (wide[:-4] + wide[4:]) - F32(0.1) * (wide[1:-3] + wide[3:-1]) + u / 2,)


def both_axes(u: Any) -> Any:
    """Rows and columns are divided."""
    above, below = tracegraph.halo(u, "x", boundary=0.0)
    left, right = tracegraph.halo(u, "y", axis=1, boundary=0.0)
    rows, columns = np.concatenate([above, u, below]), np.concatenate([left, u, right], axis=1)
    return (u + F32(0.2) * (rows[:-2] + rows[2:] + columns[:, :-2] + columns[:, 2:] - 4 * u),)


def streams(up: Any, down: Any, still: Any) -> Any:
    """As in a lattice Boltzmann method: one array moves in each direction, and all meet."""
    _, below = tracegraph.halo(up, "x")
    above, _ = tracegraph.halo(down, "x")
    up, down = np.concatenate([up[1:], below]), np.concatenate([above, down[:-1]])
    mean = (up + down + still) / 3
    return up + F32(0.5) * (mean - up), down + F32(0.25) * (mean - down), mean


PROGRAMS: dict[str, tuple[Any, int, tuple[int, ...], Any, tuple[int, ...]]] = {
    "heat": (heat, 1, (2,), P("x"), (24, 40)),
    "line": (line, 1, (3,), P("x"), (3 * 300,)),
    "both axes": (both_axes, 1, (2, 2), P("x", "y"), (40, 512)),
    "streams": (streams, 3, (2,), P("x"), (24, 9)),
}
"""A step, its arrays, a mesh, how these are divided, and their shape."""

FORMS: dict[str, Any] = {
    "small": "conditional",
    "whole": "unrolled",
    "words": "conditional",
    "arrays": "unrolled",
}
"""How loops run with each form of what is exchanged."""


def beside(plan: Any) -> list[PersistentKernelNode]:
    """The kernels that exchange and compute a map."""
    kernels = [n for n in launched(plan.graph) if isinstance(n, PersistentKernelNode)]
    return [kernel for kernel in kernels if kernel.scope.beside]


@emulated
@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name: str, tmp_path: Path) -> None:
    step, count, shape, spec, size = PROGRAMS[name]
    names, specs = ("x", "y")[: len(shape)], (spec,) * count
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(size).astype(F32) for _ in range(count)]
    host = shard(
        repeated(step), mesh=Mesh(shape, names, device="host"), in_specs=specs, out_specs=specs
    )
    wanted = tracegraph.jit(host)(*given)
    few = mock.patch.multiple(
        "lowering.planning.libraries.exchange_kernels",
        THREADS_OF_MAPS=32,
        MOST_FIRST_BLOCKS=4,
        FEW_ROUNDS=99,
    )
    for form, loops in FORMS.items():
        folder = tmp_path / form
        folder.mkdir()
        whole = mock.patch(
            "lowering.codegen.persistent.peer_rooms.WHOLE_BYTES", 4096 * (form == "whole")
        )
        words = form_of_all("words" if form == "whole" else form)
        with few, whole, words, override(loops=loops):
            gpus = Mesh(shape, names, device="cuda")
            device = EmulatedMesh(repeated(step), gpus, specs, specs, *given, folder=folder)
        assert beside(device.plan)
        assert not races(device.plan)
        for seed in range(3):
            for one, other in zip(device(*given, seed=seed), wanted, strict=True):
                np.testing.assert_allclose(one, np.asarray(other), 1e-5, 1e-5)
