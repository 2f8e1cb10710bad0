"""Collectives over named lanes as one CUDA graph: what the same program gives on a host mesh."""

from __future__ import annotations

from typing import Any

import numpy as np

import tracegraph
from tracegraph import Mesh, PartitionSpec, shard

P = PartitionSpec
B = np.random.default_rng(0).standard_normal((4, 16))


def solve(b: Any) -> Any:
    """Conjugate gradients for (2.5, -1) on the diagonals; b is a block of the right-hand side."""

    def dot(u: Any, v: Any) -> Any:
        return tracegraph.psum(np.sum(u * v), "x")

    def step(state: Any) -> Any:
        x, r, p, before, steps = state
        left, right = tracegraph.halo(p, "x", boundary=0.0)
        around = np.concatenate([left, p, right])
        q = 2.5 * p - around[:-2] - around[2:]
        alpha = before / dot(p, q)
        x, r = x + alpha * p, r - alpha * q
        after = dot(r, r)
        return x, r, r + after / before * p, after, steps + 1

    first = np.zeros_like(b), b, b, dot(b, b), 0
    x, _, _, _, steps = tracegraph.while_loop(lambda state: state[3] > 1e-20, step, first)
    return x, steps


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
