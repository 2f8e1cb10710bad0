"""Matrix products as library calls: what is read in place, copied, and run side by side."""

from __future__ import annotations

import numpy as np

import tracegraph
from lowering.plan.calls.matrix_product import MatrixProduct
from lowering.plan.nodes import LibraryNode
from lowering.plan.target.overrides import override
from tests.helpers.compiled import host_plan_of, plan_of
from tests.helpers.plans import loop_of
from tracegraph import ArrayType

F64 = np.float64


def test_independent_work_is_not_ordered():
    def two(x, y):
        return x @ x, y @ y

    square = ArrayType(F64, (64, 64))
    plan = host_plan_of(two, square, square)
    products = [k for k, n in enumerate(plan.graph.nodes) if isinstance(n, LibraryNode)]
    reach = {p: {p} for p in products}
    for i, j in sorted(plan.graph.edges):
        for seen in reach.values():
            if i in seen:
                seen.add(j)
    a, b = products
    assert b not in reach[a]
    assert a not in reach[b]


def test_library_operands_are_read_in_place_through_views_of_scratch():
    def product(x, w):
        h = np.tanh(x * 2.0)
        return h.T @ w

    plan = plan_of(product, ArrayType(F64, (90, 80)), ArrayType(F64, (90, 70)), device="cuda")
    (node,) = [n for n in plan.graph.nodes if isinstance(n, LibraryNode)]
    call = node.call
    assert isinstance(call, MatrixProduct)
    assert (call.m, call.n, call.k) == (80, 70, 90)
    assert (call.left.row_stride, call.left.column_stride) == (1, 80)
    assert [b.buffer.space for b in (call.left, call.right)] == ["scratch", "input"]


def power(a, x, n):
    return tracegraph.fori_loop(0, n, lambda _, v: a @ v, x)


def test_an_argument_of_a_product_inside_a_loop_is_copied_once_outside():
    square = ArrayType(F64, (64, 64))
    with override(operands="copied"):
        plan = plan_of(power, square, square, ArrayType(np.int64), device="cuda")
    assert next(type(n).__name__ for n in plan.graph.nodes) == "MemcpyNode"
    loop = loop_of(plan)
    assert not any(type(n).__name__ == "MemcpyNode" for n in loop.body.nodes)


def test_a_product_on_the_host_reads_its_arguments_in_place():
    plan = host_plan_of(lambda a, x: a.T @ x, ArrayType(F64, (60, 40)), ArrayType(F64, (60, 30)))
    (node,) = [n for n in plan.graph.nodes if isinstance(n, LibraryNode)]
    assert [array.buffer for array in node.call.inputs] == list(plan.inputs)
