"""Barriers of kernels whose blocks have the results of exchanges each by itself."""

from __future__ import annotations

from typing import Any

import numpy as np

import tracegraph
from lowering.codegen.persistent.persistent_kernel import persistent_text
from lowering.codegen.persistent.surroundings import Surroundings
from lowering.plan.lockstep import collective_of
from lowering.plan.nodes import KernelNode, launched, walk
from lowering.plan.persistent_kernel import PersistentKernelNode
from lowering.plan.target.overrides import override
from lowering.plan.target.scope import Scope
from tracegraph import Mesh, shard
from tracegraph import PartitionSpec as P


def test_memory_of_an_earlier_exchange_is_written_behind_a_barrier() -> None:
    """A slow block may still be at the first of three exchanges, whose results others do not need
    any more, and store its result.
    """

    def fun(x: Any) -> Any:
        def step(_: Any, x: Any) -> Any:
            total = tracegraph.psum(np.sin(x), "x")
            part = tracegraph.psum_scatter(total, "x", tiled=True)
            return np.repeat(np.cos(tracegraph.psum(part, "x")), 3) + 0.1 * np.sin(x)

        return tracegraph.fori_loop(0, 4, step, x)

    mesh = Mesh(3, "x", device="cuda")
    mapped = tracegraph.jit(shard(fun, mesh=mesh, in_specs=P("x"), out_specs=P("x")))
    with override(loops="one_kernel", scope=Scope(3, 32)):
        plan = mapped.lower(np.ones(9)).plan
    (kernel,) = [n for n in launched(plan.graph) if isinstance(n, PersistentKernelNode)]
    inside = list(walk(kernel.graph))
    totals = [
        array.buffer
        for node in inside
        if (call := collective_of(node)) is not None
        for array in call.targets
        if array.shape == (3,)
    ]
    last = [node for node in inside if isinstance(node, KernelNode)][-1]
    (written,) = [buffer for buffer in last.writes if buffer.type.shape == (3,)]

    def barriers(*, is_shared: bool) -> int:
        places = {buffer: 1024 * i for i, buffer in enumerate(plan.offsets)}  # none share memory
        if is_shared:
            places[written] = places[totals[0]]
        text, _ = persistent_text(kernel, places, Surroundings.of(plan), set())
        return text.rpartition("++exchange")[2].count("tg_grid_barrier")

    assert (barriers(is_shared=False), barriers(is_shared=True)) == (
        1,
        2,
    )  # one is at the end of each step
