"""Results of library calls that are written in the shape that is returned."""

from __future__ import annotations

from typing import Any

import numpy as np

import tracegraph
from lowering.plan.nests.analysis import nest_loads, nest_stores
from lowering.plan.nodes import KernelNode, walk
from tests.helpers.compiled import plan_of

A = np.eye(300) * 40 + np.random.default_rng(0).random((300, 300))


def test_kernels_index_buffers_by_their_axes() -> None:
    """A kernel permutes the right side, which calls then overwrite and another one reshapes."""

    def solved(a: Any, x: Any) -> Any:
        return tracegraph.cond(x[0] > 1, lambda: np.linalg.solve(a, x), lambda: x * 1.5)

    plan = plan_of(solved, A, A[0], device="cuda")
    accesses = [
        access
        for node in walk(plan.graph)
        if isinstance(node, KernelNode)
        for nest in node.kernel.nests
        for access in (*nest_loads(nest), *nest_stores(nest))
    ]
    assert len(accesses) > 3
    assert all(len(access.indices) == len(access.buffer.type.shape) for access in accesses)
