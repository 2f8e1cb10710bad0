"""Products in lower precisions: which are made of parts, and how precise these are."""

from __future__ import annotations

import numpy as np
import pytest

import tracegraph
from lowering.cuda.libraries.cublas import gemm_of
from lowering.host.executable import HostExecutable
from lowering.plan.calls.matrix_product import MatrixProduct
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.nodes import LibraryNode, walk
from tests.helpers.compiled import plan_of

RNG = np.random.default_rng(3)
X = RNG.normal(size=(100, 300)).astype(np.float32)
Y = RNG.normal(size=(300, 200)).astype(np.float32)


def product(x, y):
    return x @ y


def planned(precision, *operands, fun=product, **options):
    with tracegraph.matmul_precision(precision):
        return plan_of(fun, *operands, **options)


def calls(plan):
    nodes = [node for node in walk(plan.graph) if isinstance(node, LibraryNode)]
    return [node.call for node in nodes if isinstance(node.call, MatrixProduct)]


def test_a_product_of_parts_has_three_times_the_inner_extent_and_sums_in_float32():
    (call,) = calls(planned("bf16x3", X, Y))
    assert (call.m, call.n, call.k, call.precision) == (100, 200, 900, "float32")
    gemm = gemm_of(call, lambda buffer: 0)
    assert (gemm.dtype.name, gemm.dtype_c.name) == ("bfloat16", "float32")


def test_a_product_in_tf32_is_one_of_float32_that_says_so():
    (call,) = calls(planned("tf32", X, Y))
    gemm = gemm_of(call, lambda buffer: 0)
    assert (gemm.dtype.name, gemm.dtype_c, gemm.precision) == ("float32", None, "tf32")
    assert "k=300, tf32" in call.text


@pytest.mark.parametrize("shapes", [((300,), (300, 200)), ((2, 40, 60), (2, 60, 50))], ids=str)
def test_the_parts_have_most_bits_of_float32(shapes):
    x, y = (RNG.normal(size=shape).astype(np.float32) for shape in shapes)
    found = HostExecutable(planned("bf16x3", x, y, choices={"products": "library"}))([x, y])[0]
    exact, scale = x.astype("f8") @ y.astype("f8"), np.abs(x).astype("f8") @ np.abs(y)
    error = (np.abs(found - exact) / scale).max()
    assert 1e-9 < error < 2.0**-15


def test_products_in_the_same_array_layouts_are_split():
    found = HostExecutable(planned("bf16x3", Y, X, fun=lambda x, y: x.T @ y.T))([Y, X])[0]
    np.testing.assert_allclose(found, Y.T @ X.T, atol=1e-3)


@pytest.mark.parametrize("shapes", [((300,), (300, 200)), ((30, 4, 4), (30, 4, 4))], ids=str)
def test_thin_and_small_products_are_sums_in_float32(shapes):
    plan = planned("bf16x3", *(np.ones(shape, np.float32) for shape in shapes))
    assert not calls(plan)
    assert "bf16" not in str(plan)


def test_the_host_multiplies_in_float32():
    (call,) = calls(planned("bf16x3", X, Y, device="host"))
    assert call.k == 300
    np.testing.assert_array_equal(
        HostExecutable(planned("bf16x3", X, Y, device="host"))([X, Y])[0], X @ Y
    )


def test_parts_of_what_a_loop_does_not_change_are_made_before_it():
    def run(x, y):
        return tracegraph.while_loop(lambda x: x.sum() < 1e30, lambda x: x @ y, x)

    plan = planned("bf16x3", X, np.ones((300, 300), np.float32), fun=run)
    (loop,) = [node for node in plan.graph.nodes if isinstance(node, WhileNode)]
    right = calls(plan)[0].right.buffer
    assert right in set().union(*(node.writes for node in plan.graph.nodes if node is not loop))
    assert all(right not in node.writes for node in loop.body.nodes)


def test_parts_are_stored_in_the_order_of_the_factor():
    (call,) = calls(planned("bf16x3", Y, X, fun=lambda x, y: x.T @ y.T))
    assert (call.left.row_stride, call.right.column_stride) == (1, 900)
