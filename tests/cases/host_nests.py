"""Nests written by hand, and the host programs that functions become."""

from __future__ import annotations

import numpy as np

import tracegraph
import tracegraph.ops
from lowering.backends.host import HostBackend
from lowering.host.arena import Workspace
from lowering.host.evaluation import numpy_calls
from lowering.host.passes import Passes
from lowering.host.tuning.instructions.blocking import BlockedProgram
from lowering.host.tuning.passes import PASSES
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Kernel
from lowering.plan.nodes import Graph, KernelNode
from lowering.plan.plan import Plan
from tests.helpers.compiled import host_plan_of
from tracegraph.ir.op import get
from tracegraph.ir.scalar import Axis
from tracegraph.ir.scalar_values import apply
from tracegraph.ir.types import ArrayType

F64 = np.dtype(np.float64)
TUNED = Passes(PASSES)


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


def disjoint(one, other):
    """Whether two buffers share memory: only each with itself."""
    return one is other


def ones(*shape):
    """Ones that take no memory: plans depend on shapes only."""
    return np.broadcast_to(np.float32(1), shape)


def evaluated(function, *arguments):
    """The programs of all nests before passes rewrite their instructions."""
    plan = host_plan_of(function, *arguments)
    return [
        program
        for node in plan.graph.nodes
        for program in TUNED.evaluated(node.kernel, plan, disjoint)
    ]


def programs_of(function, *arguments):
    """The programs of all nests as they run."""
    programs = TUNED.programs(host_plan_of(function, *arguments), disjoint, Workspace())
    return [program for each in programs.values() for program in each]


def steps_of(function, *arguments):
    """The instructions of all nests as they run."""
    return [made for program in programs_of(function, *arguments) for made in program.instructions]


def block_length(program):
    """The elements of a block; None if the nest runs whole."""
    return program.length if isinstance(program, BlockedProgram) else None


def assert_same(function, *arguments):
    found, wanted = tracegraph.jit(function, device="host")(*arguments), function(*arguments)
    for array, expected in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(array), expected)


def copies_of(steps):
    return [made for made in steps if made.function is numpy_calls.store]


def random(*shape):
    return np.random.default_rng(len(shape)).random(shape, np.float32)
