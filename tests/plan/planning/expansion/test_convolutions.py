"""Convolutions are nests that read windows in place, and so are their derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import tracegraph
from lowering.codegen.products.product_geometry import product_geometry
from lowering.plan.calls.matrix_product import MatrixProduct
from lowering.plan.nests.kernel import MapNest, RowNest
from lowering.plan.nests.tiled_products import tiled_product
from lowering.plan.nodes import KernelNode, LibraryNode, walk
from tests.helpers.compiled import plan_of
from tests.programs.tiled_products import CASES, convolved, operands, slopes
from tracegraph.errors import UnschedulableError

X, W = np.ones((8, 20, 20, 32), "f4"), np.ones((3, 3, 32, 64), "f4")


def plan_source(function, x, w, precision):
    with tracegraph.matmul_precision(precision):
        return tracegraph.jit(function, device="cuda").lower(x, w).source


def nests(plan):
    nodes = [node for node in walk(plan.graph) if isinstance(node, KernelNode)]
    return [nest for node in nodes for nest in node.kernel.nests]


def products(plan):
    return [tiled_product(nest) for nest in nests(plan) if tiled_product(nest) is not None]


def calls(plan):
    nodes = [node for node in walk(plan.graph) if isinstance(node, LibraryNode)]
    return [node for node in nodes if isinstance(node.call, MatrixProduct)]


def test_a_convolution_is_one_kernel_without_scratch():
    plan = plan_of(convolved, X, W)
    (product,) = products(plan)
    assert len(plan.graph.nodes) == len(nests(plan)) == 1
    assert not calls(plan)
    assert [n for _, n in product.summed] == [32, 3, 3]
    assert [n for _, n in product.rows] == [8, 18, 18]


def test_derivatives_are_products_of_what_is_in_memory():
    plan = plan_of(slopes, X, W)
    assert len(products(plan)) == 3
    assert not calls(plan)
    whole = 3 * 3 * X.nbytes
    assert all(buffer.type.nbytes < whole / 2 for buffer in plan.offsets)


@pytest.mark.parametrize("name", CASES)
def test_each_case_has_products_by_tiles(name):
    assert products(plan_of(CASES[name][0], *operands(name, "float32")))


def test_what_follows_point_by_point_is_fused():
    function, _ = CASES["epilogue"]
    plan = plan_of(function, *operands("epilogue", "float32"))
    assert len(nests(plan)) == len(products(plan)) == 1


def test_passes_over_rows_of_the_result_are_kernels_of_their_own():
    def soft(x, w):
        return tracegraph.special.softmax(convolved(x, w), axis=-1)

    plan = plan_of(soft, X, W)
    (product,) = (nest for nest in nests(plan) if tiled_product(nest) is not None)
    assert any(isinstance(nest, RowNest) for nest in nests(plan) if nest is not product)


def test_small_convolutions_stay_library_calls():
    small = plan_of(convolved, X[:1, :4, :4], W[..., :8])
    assert not products(small)


def test_tensor_cores_multiply_tiles_in_tf32_only():
    assert not any(product.rounded for product in products(plan_of(slopes, X, W)))
    with tracegraph.matmul_precision("tf32"):
        plan = plan_of(slopes, X, W)
    assert [product.rounded for product in products(plan)] == [True] * 3
    assert not calls(plan)
    assert "tg_multiply_tf32" in plan_source(slopes, X, W, "tf32")
    assert "tg_multiply_tf32" not in plan_source(slopes, X, W, "bf16x3")


def test_a_loop_around_a_large_product_cannot_be_one_kernel():
    def repeated(x, w):
        def step(i, x):
            return np.pad(convolved(x, w), ((0, 0), (1, 1), (1, 1), (0, 0)))

        return tracegraph.fori_loop(0, 9, step, x, schedule="one_kernel")

    with pytest.raises(UnschedulableError, match="a large product inside"):
        plan_of(repeated, X, W[..., :32])


def test_the_host_multiplies_by_its_library():
    plan = plan_of(convolved, X, W, device="host")
    assert calls(plan)
    assert all(isinstance(nest, MapNest) for nest in nests(plan))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_many_small_matrices_are_multiplied_by_tiles(dtype):
    x, y = np.ones((900, 16, 24), dtype), np.ones((900, 24, 32), dtype)
    plan = plan_of(lambda x, y: np.tanh(x @ y), x, y)
    (product,) = products(plan)
    assert not calls(plan)
    assert [n for _, n in product.batch] == [900]


def test_small_matrices_in_lower_precision_are_not_split():
    x = np.ones((900, 24, 24), "f4")
    with tracegraph.matmul_precision("bf16x3"):
        plan = plan_of(lambda x: x @ x, x)
    assert products(plan)
    assert "bf16" not in str(plan)


def test_a_few_small_or_shared_matrices_are_library_calls():
    x, y = np.ones((100, 24, 24), "f4"), np.ones((24, 24), "f4")
    assert not products(plan_of(lambda x: x @ x.swapaxes(1, 2), x[:9]))
    assert calls(plan_of(lambda x, y: x @ y, np.ones((900, 24, 24), "f4"), y))


@pytest.mark.parametrize(("dtype", "channels"), [("float32", 256), ("float64", 128)])
def test_many_channels_are_for_the_library(dtype, channels):
    x, w = np.ones((2, 12, 12, 64), dtype), np.ones((3, 3, 64, channels), dtype)
    assert not products(plan_of(convolved, x, w))
    assert len(products(plan_of(convolved, x, w[..., : channels // 2]))) == 1
    assert len(products(plan_of(slopes, x, w))) == 0


def test_long_sums_of_small_matrices_are_shared_by_blocks():
    def covariances(weights, x, centres):
        d = x - centres[:, None]
        return np.einsum("nk,kni,knj->kij", weights, d, d)

    shapes = (5000, 8), (5000, 12), (8, 12)
    plan = plan_of(covariances, *(np.ones(shape) for shape in shapes))
    (product,) = products(plan)
    assert not calls(plan)
    assert product_geometry(product, np.dtype("f8")).splits > 16
