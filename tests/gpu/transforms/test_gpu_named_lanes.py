"""Collectives over named lanes as one CUDA graph: what the same program gives on a host mesh."""

from __future__ import annotations

from typing import Any

import numpy as np

import tracegraph
from tests.programs.sharded import solve
from tracegraph import Mesh, PartitionSpec, shard

P = PartitionSpec
B = np.random.default_rng(0).standard_normal((4, 16))


def others(x: Any) -> Any:
    every = tracegraph.all_gather(x[:2], "x", tiled=True)
    block = tracegraph.psum_scatter(x[:4] ** 2, "x")
    swapped = tracegraph.all_to_all(x, "x", 0, 0, tiled=True)
    most = tracegraph.pmax(x, "x") - tracegraph.pmin(x, "x")
    gradient = tracegraph.grad(lambda x: tracegraph.psum(np.sum(np.sin(x) ** 2), "x"))(x)
    return every + tracegraph.axis_index("x"), block, swapped, most, gradient


def test_a_solver_over_lanes_is_that_of_a_mesh() -> None:
    mesh = Mesh(4, "x", device="host")
    mapped = shard(solve, mesh=mesh, in_specs=P("x"), out_specs=(P("x"), P()))
    wanted, steps = tracegraph.jit(mapped)(B.ravel())
    found, taken = tracegraph.jit(tracegraph.vmap(solve, axis_name="x"), device="cuda")(B)
    np.testing.assert_allclose(np.asarray(found).ravel(), np.asarray(wanted), 1e-9, 1e-12)
    assert np.asarray(taken).tolist() == [int(steps)] * 4


def test_other_collectives_are_those_of_the_host() -> None:
    mapped = tracegraph.vmap(others, axis_name="x")
    wanted = tracegraph.jit(mapped, device="host")(B)
    for one, other in zip(tracegraph.jit(mapped, device="cuda")(B), wanted, strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), 1e-12, 1e-12)
