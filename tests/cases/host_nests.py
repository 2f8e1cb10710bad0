"""Nests written by hand, run on the host."""

from __future__ import annotations

import numpy as np

from lowering.backends.host import HostBackend
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Kernel
from lowering.plan.nodes import Graph, KernelNode
from lowering.plan.plan import Plan
from tracegraph.ir.op import get
from tracegraph.ir.scalar import Axis
from tracegraph.ir.scalar_values import apply
from tracegraph.ir.types import ArrayType

F64 = np.dtype(np.float64)


def buffer(space, number, *shape, dtype=F64):
    return Buffer(space, number, ArrayType(dtype, shape))


def axes(*extents):
    return tuple(Axis.make(i, n) for i, n in enumerate(extents))


def ap(name, *args, dtype=F64):
    return apply(get(name), args, np.dtype(dtype), {})


def run(nodes, inputs, outputs, arguments, scratch=(), offsets=None):
    """Run nodes in a row, each after the one before."""
    if offsets is None:
        offsets = {
            b: 256 * sum(-(-c.type.nbytes // 256) for c in scratch[:i])
            for i, b in enumerate(scratch)
        }
    size = max((at + b.type.nbytes for b, at in offsets.items()), default=0)
    nodes = [KernelNode(Kernel("k", (n,))) if not hasattr(n, "sources") else n for n in nodes]
    edges = frozenset((i, i + 1) for i in range(len(nodes) - 1))
    plan = Plan("p", Graph(tuple(nodes), edges), inputs, outputs, (), offsets, size, 0)
    return HostBackend(poison=True).compile(plan)(arguments)
