"""Equations that share kernels: what is merged, how far, and the lines that nodes know."""

from __future__ import annotations

import numpy as np
import pytest

import tracegraph
from lowering.fusion.pointwise import MAX_EXPRESSIONS
from lowering.plan.nests.analysis import nest_reads, nest_size, nest_writes
from lowering.plan.nests.kernel import MapNest, ReduceNest
from lowering.plan.nodes import KernelNode
from tests.helpers.compiled import host_plan_of, plan_of
from tests.helpers.plans import kinds, nests_of, vector
from tracegraph import ArrayType

F32, F64 = np.float32, np.float64


def chain(x, y):
    z = np.sin(x.T.reshape(6, 2)[::-1] + y)
    return np.exp(z) * z


def used_by_two_index_maps(x):
    s = np.sin(x) * np.cos(x)
    return s + s[::-1]


def backwards(x):
    mean = np.mean(x, axis=1, keepdims=True)
    return x - mean, np.sin(mean[::-1])


def across_memory(x, y):
    z = x.T + y
    return z, np.sum(z, axis=1)


def gated(x, gain):
    """Else the last map would read from two nests of one kernel, and could become part of none."""
    total = np.sum(x, axis=1, keepdims=True)
    gain = np.exp(gain)
    y = x / total * gain
    return y - np.max(y, axis=1, keepdims=True) * gain


def standardised_columns(x):
    centred = x - np.mean(x, axis=0)
    return centred / np.sqrt(np.mean(centred * centred, axis=0))


def types(dtype, *shapes):
    return [ArrayType(dtype, shape) for shape in shapes]


KERNELS = {
    "a chain with views": (chain, types(F64, (3, 4), (2,)), 1),
    "a value that two index maps use": (used_by_two_index_maps, [vector()], 2),
    "small independent results": (
        lambda x, y: (x + 1.0, y * 2.0, np.sum(y)),
        [vector(16), vector(32)],
        1,
    ),
    "a product of integers": (lambda x, y: x @ y, types(np.int32, (4, 4), (4, 4)), 1),
    "nothing but empty arrays": (lambda x: np.sin(x) * 2.0, types(F64, (0, 3)), 0),
    "rows and what reads none": (gated, types(F64, (600, 64), (600, 1)), 1),
    "rows that are read backwards": (backwards, types(F64, (8, 3)), 2),
    "rows that are read across memory": (across_memory, types(F32, (2000, 1500), (1500, 2000)), 2),
    "columns as rows": (standardised_columns, types(F64, (64, 1024)), 1),
}
"""Functions, the types of their arguments, and how many kernels they are on the host."""

STORED = {"a value that two index maps use": 256, "rows that are read backwards": None}
"""Bytes of scratch; None is any, and others have none."""


@pytest.mark.parametrize("name", KERNELS)
def test_equations_are_merged_into_kernels(name):
    function, arguments, count = KERNELS[name]
    plan = host_plan_of(function, *arguments)
    assert kinds(plan) == ({"KernelNode": count} if count else {})
    if STORED.get(name, 0) is not None:
        assert plan.arena_bytes == STORED.get(name, 0)


def test_what_is_gathered_or_rolled_is_computed_of_many_arrays_at_once():
    index = ArrayType(np.int32, (1 << 21,))
    rows, scale, large = types(F32, (1 << 19, 8), (8,), (1 << 22,))
    gathered = plan_of(lambda index, x, scale: (x * scale)[index, index % 8], index, rows, scale)
    rolled = plan_of(lambda x, y, z: np.roll(x * y + z, 5), *[large] * 3)
    assert kinds(gathered) == kinds(rolled) == {"KernelNode": 1}


def test_results_that_are_stored_at_once_know_all_lines():
    def step(x):
        y = x
        for _ in range(30):
            y = np.sin(y) - y
        return (
            y * x,
            y + x,
        )

    (node,) = host_plan_of(step, vector()).graph.nodes
    first = step.__code__.co_firstlineno
    assert [source.line - first for source in node.sources] == [3, 5, 6]


def test_nodes_know_the_lines_of_all_they_compute():
    def step(x):
        shared = x + 1
        return (
            shared * x,
            shared - x,
        )

    def two(x):
        moved = np.roll(x, 1) * x
        return moved, np.sum(x)

    (node,) = host_plan_of(step, vector()).graph.nodes
    first = node.sources[0].line
    assert [source.line - first for source in node.sources] == [0, 2, 3]
    found = {
        source.line - two.__code__.co_firstlineno
        for n in host_plan_of(two, vector()).graph.nodes
        for source in n.sources
    }
    assert found == {1, 2}


def test_a_reduction_takes_its_producers_and_its_epilogue():
    plan = host_plan_of(lambda x: np.sqrt(((x * 2.0) ** 2).sum(1)) + 1.0, ArrayType(F64, (5, 7)))
    (node,) = plan.graph.nodes
    assert isinstance(node, KernelNode)
    (nest,) = node.kernel.nests
    assert isinstance(nest, ReduceNest)
    assert (nest.space, nest.loop) == ((5,), (7,))
    assert plan.arena_bytes == 0


def test_sibling_reductions_over_the_same_axes_share_one_pass():
    plan = host_plan_of(lambda x: (np.sum(x), np.max(x)), vector())
    (node,) = plan.graph.nodes
    (nest,) = node.kernel.nests
    assert len(nest.accumulators) == 2


def test_a_copy_of_what_a_row_stores_is_not_read_back():
    """Found by hypothesis: the product's row had not stored the first result yet."""

    def function(x):
        y = -x
        return y, y, -(x @ y)

    x = np.array([[7]], np.int8)
    found = tracegraph.jit(function, device="host")(x)
    assert [np.asarray(each).item() for each in found] == [-7, -7, 49]
    ((rows,),) = [node.kernel.nests for node in host_plan_of(function, x).graph.nodes]
    assert nest_writes(rows).isdisjoint(nest_reads(rows))


def test_merging_stops_at_a_kernel_of_many_expressions():
    def chain(x, y):
        for _ in range(2000):
            x, y = x * y, np.maximum(x, y)
        return x, y

    plan = host_plan_of(chain, vector(), vector())
    sizes = [nest_size(nest) for node in plan.graph.nodes for nest in node.kernel.nests]
    assert max(sizes) <= MAX_EXPRESSIONS
    assert min(sizes[:-1]) > MAX_EXPRESSIONS - 4, "what an equation adds"


def test_merging_stops_at_a_kernel_whose_buffers_are_all_that_its_parameters_can_hold():
    plan = host_plan_of(lambda *xs: [x + 1 for x in xs], *[vector(3)] * 2100)
    kernels = [node.kernel for node in plan.graph.nodes]
    touched = [{b for n in k.nests for b in (*nest_reads(n), *nest_writes(n))} for k in kernels]
    assert len(kernels) == 2
    assert max(map(len, touched)) <= 4095  # 32764 bytes


def test_thousands_of_arrays_are_joined_by_several_kernels():
    plan = host_plan_of(lambda *xs: np.concatenate(xs), *[vector(3)] * 4200)
    kernels = [node.kernel for node in plan.graph.nodes]
    read = [{b for nest in kernel.nests for b in nest_reads(nest)} for kernel in kernels]
    assert len(set().union(*read) & {*plan.inputs}) == 4200
    assert max(map(len, read)) <= 4000


def test_a_scatter_into_a_dying_array_copies_nothing():
    def update(x):
        y = np.sin(x)
        y[np.array([0, 3])] = 1.0
        y[np.array([1, 3])] += 2.0
        return y

    plan = host_plan_of(update, vector())
    nests = nests_of(plan.graph)
    assert [n.space for n in nests if isinstance(n, MapNest)].count((8,)) == 1
    assert plan.arena_bytes == 256  # the two updates of +=
