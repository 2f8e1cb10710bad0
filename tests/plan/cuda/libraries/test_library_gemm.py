"""A library node as cuBLAS arguments, checked by doing what cuBLAS documents, in NumPy; and which
products are none.
"""

import numpy as np
import pytest

import lowering.plan.calls.matrix_product
import tracegraph
from lowering.cuda.libraries.cublas import gemm_of
from lowering.plan.calls.matrix_product import MatrixOperand, MatrixProduct
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nodes import KernelNode, LibraryNode
from lowering.plan.target.overrides import override
from tracegraph.dtypes import bfloat16
from tracegraph.ir.types import ArrayType

M, N, K, BATCH = 3, 4, 5, 2


def column_major(memory, address, rows, columns, leading, transpose):
    """The matrix that cuBLAS reads: `rows` by `columns` after the transposition."""
    shape = (columns, rows) if transpose else (rows, columns)
    matrix = np.array(
        [[memory[address + i + j * leading] for j in range(shape[1])] for i in range(shape[0])]
    )
    return matrix.T if transpose else matrix


def run(gemm, memory, itemsize):
    a, b, c = (address // itemsize for address in (gemm.a, gemm.b, gemm.c))
    for batch in range(gemm.batch):
        left = column_major(
            memory, a + batch * gemm.stride_a, gemm.m, gemm.k, gemm.lda, gemm.transpose_a
        )
        right = column_major(
            memory, b + batch * gemm.stride_b, gemm.k, gemm.n, gemm.ldb, gemm.transpose_b
        )
        product = left @ right
        for i in range(gemm.m):
            for j in range(gemm.n):
                memory[c + batch * gemm.stride_c + i + j * gemm.ldc] = product[i, j]


def strides(rows, columns, order, padding):
    if order == "row":
        return columns + padding, 1
    return 1, rows + padding


@pytest.mark.parametrize("left_order", ["row", "column"])
@pytest.mark.parametrize("right_order", ["row", "column"])
@pytest.mark.parametrize("extents", [(M, N, K), (1, N, K), (M, 1, K), (M, N, 1), (1, 1, 1)])
@pytest.mark.parametrize("shared_left", [False, True])
def test_a_row_major_product(left_order, right_order, extents, shared_left):
    m, n, k = extents
    memory = np.random.default_rng(0).standard_normal(400)
    buffers = [Buffer("scratch", i, ArrayType("float64", (100,))) for i in range(3)]
    base = dict(zip(buffers, (0, 1024, 2048), strict=True))
    left_strides, right_strides = strides(m, k, left_order, 2), strides(k, n, right_order, 1)
    left = MatrixOperand(buffers[0], 3, 0 if shared_left else 40, *left_strides)
    right = MatrixOperand(buffers[1], 1, 45, *right_strides)
    target = MatrixOperand(buffers[2], 2, 30, n, 1)
    call = MatrixProduct(BATCH, m, n, k, left, right, target)

    def matrices(operand, rows, columns):
        start = base[operand.buffer] // 8 + operand.offset
        return np.lib.stride_tricks.as_strided(
            memory[start:],
            (BATCH, rows, columns),
            tuple(8 * s for s in (operand.batch_stride, operand.row_stride, operand.column_stride)),
        )

    expected = matrices(left, m, k) @ matrices(right, k, n)
    run(gemm_of(call, base.__getitem__), memory, 8)
    np.testing.assert_allclose(matrices(target, m, n), expected, rtol=1e-12)


def test_an_operand_without_a_unit_stride_is_refused():
    buffers = [Buffer("scratch", i, ArrayType("float64", (100,))) for i in range(3)]
    good = [MatrixOperand(b, 0, 0, 4, 1) for b in buffers]
    bad = MatrixOperand(buffers[0], 0, 0, 8, 2)
    with pytest.raises(ValueError, match=r"scratch\[0\].*\(8, 2\)"):
        gemm_of(MatrixProduct(1, 4, 4, 4, bad, good[1], good[2]), lambda b: 0)
    column_major_target = MatrixOperand(buffers[2], 0, 0, 1, 4)
    with pytest.raises(ValueError, match="row-major"):
        gemm_of(MatrixProduct(1, 4, 4, 4, good[0], good[1], column_major_target), lambda b: 0)
    broadcast = MatrixOperand(buffers[1], 0, 0, 0, 1)
    with pytest.raises(ValueError, match=r"\(0, 1\)"):
        gemm_of(MatrixProduct(1, 4, 4, 4, good[0], broadcast, good[2]), lambda b: 0)


def matmul(x, y):
    return x @ y


def nodes(*arguments):
    plan = tracegraph.jit(matmul, device="host").lower(*arguments).plan
    return [type(node) for node in plan.graph.nodes]


def test_what_the_library_cannot_count_is_a_reduction():
    most = ArrayType("float32", (2**31 - 1,))
    more = ArrayType("float32", (2**31,))
    assert LibraryNode in nodes(most, most)
    assert LibraryNode not in nodes(more, more)


@pytest.mark.parametrize("dtype", [np.float16, bfloat16, np.float32, np.complex128])
@pytest.mark.parametrize(
    "shapes", [((9,), (9,)), ((3, 9), (9,)), ((9, 2), (2, 3)), ((2, 3, 9), (2, 9, 5))], ids=str
)
def test_reductions_give_the_products_of_the_library(monkeypatch, shapes, dtype):
    rng = np.random.default_rng(1)
    x, y = (rng.uniform(0.5, 1, shape).astype(dtype) for shape in shapes)
    by_library = np.asarray(tracegraph.jit(matmul, device="host")(x, y))
    monkeypatch.setattr(lowering.plan.calls.matrix_product, "LIBRARY_MAX", 8)
    assert LibraryNode not in nodes(x, y)
    product = np.asarray(tracegraph.jit(matmul, device="host")(x, y))
    assert product.dtype == by_library.dtype
    close = {2: 1e-2, 4: 1e-6}.get(np.dtype(dtype).itemsize, 1e-12)
    np.testing.assert_allclose(product.astype(complex), by_library.astype(complex), rtol=close)


def test_rows_too_far_apart_for_the_library_are_copied(monkeypatch):
    monkeypatch.setattr(lowering.plan.calls.matrix_product, "LIBRARY_MAX", 8)
    x, y = np.arange(27.0).reshape(3, 9), np.arange(8.0).reshape(4, 2)

    def of_part(x, y):
        return x[:, :4] @ y

    jitted = tracegraph.jit(of_part, device="host")
    with override(products="library"):
        kinds = [type(node) for node in jitted.lower(x, y).plan.graph.nodes]
        np.testing.assert_array_equal(np.asarray(jitted(x, y)), of_part(x, y))
    assert LibraryNode in kinds
    assert KernelNode in kinds
