"""Loops in one kernel whose devices exchange arrays: each device is a thread of the emulator."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tracegraph
from lowering.codegen import unit_source
from lowering.plan.nodes import LibraryNode, launched
from lowering.plan.persistent_kernel import PersistentKernelNode
from lowering.plan.target.overrides import override
from lowering.plan.target.scope import Scope
from tests.emulation.emulator import COMPILER
from tests.emulation.mesh_emulator import EmulatedMesh
from tests.programs.sharded import solve
from tests.property.test_sharded_programs import (
    MESH,
    M,
    Program,
    Whole,
    arrays,
    own,
    programs,
    run,
)
from tracegraph import Mesh, shard
from tracegraph import PartitionSpec as P

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")

SCOPES = (Scope(1, 1), Scope(1, 64), Scope(3, 32), Scope(4, 32, clustered=True))
FORMS = ("small", "words", "arrays")


def form_of_all(form: str) -> Any:
    """A context in which all exchanges have a form, if they can."""
    limits = {"SMALL_BYTES": 4096 * (form == "small"), "WORDS_BYTES": 4096 * (form == "words")}
    return mock.patch.multiple("lowering.plan.calls.collectives", **limits)


def emulated(
    fun: Any, mesh: Mesh, in_specs: Any, out_specs: Any, *arguments: Any, scope: Scope, folder: Path
) -> EmulatedMesh:
    """A function with one loop, which is a kernel."""
    gpus = Mesh(tuple(mesh.shape.values()), mesh.axis_names, device="cuda")
    with override(loops="one_kernel", scope=scope):
        found = EmulatedMesh(fun, gpus, in_specs, out_specs, *arguments, folder=folder)
    kernels = [n for n in launched(found.plan.graph) if isinstance(n, PersistentKernelNode)]
    assert [kernel.scope for kernel in kernels if kernel.exchange is None] == [scope]
    return found


def repeated(program: Program) -> Any:
    """A program in a loop of three steps."""

    def fun(x: Any, s: Any) -> Any:
        return tracegraph.fori_loop(0, 3, lambda i, state: own(program)(*state), (x, s))

    return fun


def until_three(program: Program) -> Any:
    """The same, where the number of steps is data."""

    def fun(x: Any, s: Any) -> Any:
        def step(state: Any) -> Any:
            return (*own(program)(*state[:2]), state[2] + 1)

        return tracegraph.while_loop(lambda state: state[2] < 3, step, (x, s, 0 * s.size))[:2]

    return fun


def after_three(program: Program, state: Any) -> Any:
    """What three steps give, of programs whose values do not grow out of all bounds."""
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(3):
            state = run(Whole(), program, state)
    assume(max(np.abs(each).max() for each in state) < 1e100)
    return state


@given(programs(("what all have",)), arrays, st.sampled_from(SCOPES), st.sampled_from(FORMS))
@settings(max_examples=10, deadline=None)
def test_random_programs(program: Program, x: Any, scope: Scope, form: str) -> None:
    s = np.linspace(-1, 1, M)
    specs = (P("x"), P())
    with TemporaryDirectory() as folder, form_of_all(form):
        fun = repeated(program)
        device = emulated(fun, MESH, specs, specs, x, s, scope=scope, folder=Path(folder))
        for seed in range(3):  # other values each time: those of the last time would be wrong
            given = (1 - 0.3 * seed) * x, s
            wanted = after_three(program, given)
            for one, other in zip(device(*given, seed=seed), wanted, strict=True):
                np.testing.assert_allclose(one, other, 1e-9, 1e-9)


@given(
    programs(("what all have",)),
    arrays,
    st.sampled_from([repeated, until_three]),
    st.sampled_from(["conditional", "unrolled"]),
    st.sampled_from(FORMS),
)
@settings(max_examples=6, deadline=None)
def test_collectives_in_kernels_of_their_own(
    program: Program, x: Any, loop: Any, schedule: str, form: str
) -> None:
    s, specs = np.linspace(-1, 1, M), (P("x"), P())
    gpus = Mesh(tuple(MESH.shape.values()), MESH.axis_names, device="cuda")
    blocks = mock.patch("lowering.planning.libraries.exchange_kernels.BLOCK_BYTES", 64)
    with TemporaryDirectory() as folder, form_of_all(form), blocks:
        with override(loops=schedule):
            given = (loop(program), gpus, specs, specs, x, s)
            device = EmulatedMesh(*given, folder=Path(folder))
        assert not any(isinstance(n, LibraryNode) for n in launched(device.plan.graph))
        for seed in range(3):
            given = (1 - 0.3 * seed) * x, s
            wanted = after_three(program, given)
            for one, other in zip(device(*given, seed=seed), wanted, strict=True):
                np.testing.assert_allclose(one, other, 1e-9, 1e-9)


DTYPES = ("float16", "int8", "uint64", "float32", "complex128")


def of_all_dtypes(*given: Any) -> Any:
    """Collectives of each kind, whose arrays fill no whole number of words."""

    def exchange(x: Any) -> Any:
        total = tracegraph.psum(x, "x")
        gathered = tracegraph.all_gather(total + x, "y")
        blocks = tracegraph.all_to_all(np.stack([x, total, x]), "y", 0, 0)
        own = tracegraph.psum_scatter(np.stack([total, x]), "x")
        moved = tracegraph.ppermute(x, "y", [(0, 2), (2, 1)])
        if x.dtype.kind != "c":
            moved = moved + tracegraph.pmax(x, ("x", "y")) - tracegraph.pmin(x, "y")
        found = gathered.sum(0) + blocks.sum(0) + own + moved
        return (found // 16 if x.dtype.kind in "iu" else found / 16).astype(x.dtype)

    return tracegraph.fori_loop(0, 2, lambda i, state: tuple(map(exchange, state)), given)


@pytest.mark.parametrize("form", FORMS)
def test_all_kinds_on_a_grid(form: str, tmp_path: Path) -> None:
    mesh = Mesh((2, 3), ("x", "y"), device="host")
    rng = np.random.default_rng(0)
    launches = [[(8 * rng.random((6, 75))).astype(d) for d in DTYPES] for _ in range(3)]
    specs = (P(("x", "y")),) * len(DTYPES)
    mapped = tracegraph.jit(shard(of_all_dtypes, mesh=mesh, in_specs=specs, out_specs=specs))
    with form_of_all(form):
        device = emulated(
            of_all_dtypes, mesh, specs, specs, *launches[0], scope=Scope(2, 32), folder=tmp_path
        )
        for seed, given in enumerate(launches):
            for one, other in zip(device(*given, seed=seed), mapped(*given), strict=True):
                np.testing.assert_allclose(one, np.asarray(other), 1e-2, 1e-2)


def test_blocks_go_on_to_the_next_step_from_a_sum(tmp_path: Path) -> None:
    """There is one barrier of all blocks in a step: what they send takes turns."""

    def fun(x: Any) -> Any:
        def step(_: Any, state: Any) -> Any:
            x, total = state
            x = 0.5 * x + 1e-3 * total
            return x, tracegraph.psum(np.sum(x), "x")

        return tracegraph.fori_loop(0, 7, step, (x, 0.0))

    mesh, x = Mesh(2, "x", device="host"), np.random.default_rng(3).standard_normal(5000)
    specs = P("x"), (P("x"), P())
    mapped = tracegraph.jit(shard(fun, mesh=mesh, in_specs=specs[0], out_specs=specs[1]))
    device = emulated(fun, mesh, *specs, x, scope=Scope(3, 32), folder=tmp_path)
    (source,) = [f for f in unit_source(device.plan).functions.values() if "other_p" in f]
    assert source.count("tg_grid_barrier") == 2  # one is in front of the loop
    for seed in range(6):
        for found, wanted in zip(device(x + seed, seed=seed), mapped(x + seed), strict=True):
            np.testing.assert_allclose(found, np.asarray(wanted), 1e-12)


def test_turns_go_on_from_launch_to_launch(tmp_path: Path) -> None:
    """Loops of an odd and an even number of steps, and of none; all blocks of all have the same."""
    mesh, b = Mesh(2, "x", device="host"), np.random.default_rng(1).standard_normal(40)
    specs = P("x"), (P("x"), P())
    with override(loops="one_kernel", scope=Scope(3, 32)):
        device = EmulatedMesh(solve, Mesh(2, "x", device="cuda"), *specs, b, folder=tmp_path)
    mapped = tracegraph.jit(shard(solve, mesh=mesh, in_specs=specs[0], out_specs=specs[1]))
    counts = set()
    for number, scale in enumerate((1.0, 1e-9, 0.0, 1e-8, 1e-2)):
        (x, steps), (wanted, expected) = device(scale * b, seed=number), mapped(scale * b)
        np.testing.assert_allclose(x, np.asarray(wanted), 1e-8, 1e-12)
        assert int(steps) == int(expected)
        counts.add(int(steps) % 2 if int(steps) else "none")
    assert counts == {0, 1, "none"}
