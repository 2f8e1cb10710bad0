"""Matrix products and triangular systems as cuBLAS calls.

cuBLAS is column-major. A row-major C = A B is, read column-major, Cᵀ = Bᵀ Aᵀ; so the operands swap
places, and an operand whose columns are contiguous in a row needs no transposition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from lowering.cuda.interface import Gemm
from lowering.cuda.libraries.bindings import binding
from lowering.plan.calls.lapack import BatchedLU, BatchedSolve, TriangularSolve
from lowering.plan.calls.matrix_product import MatrixOperand, MatrixProduct
from lowering.plan.nests.buffer import Buffer
from tracegraph.dtypes import bfloat16
from tracegraph.modes import Precision

WORKSPACE_BYTES = 32 << 20
"""What NVIDIA recommends for Hopper; with less, cuBLAS may choose slower kernels."""

_CUDA_R_32F, _CUDA_R_64F, _CUDA_R_16F, _CUDA_C_32F, _CUDA_C_64F, _CUDA_R_16BF = 0, 1, 2, 4, 5, 14
"""CUDA's numbers of the types of elements (`cudaDataType_t`)."""

_PREFIXES = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


def product(
    call: MatrixProduct, address: Callable[[Buffer], int], arrays: int | None = None
) -> Callable[[Cublas], None]:
    """What issues a product: by the addresses of its matrices, or of pointer arrays, which have
    those of left, right and target.
    """
    if arrays is None:
        gemm = gemm_of(call, address)
        return lambda library: library.multiply(gemm)
    left, right, target = (arrays + 8 * call.batch * number for number in range(3))
    by_pointer = replace(gemm_of(call, lambda _: 0), a=right, b=left, c=target)
    return lambda library: library.multiply_by_pointer(by_pointer)


def gemm_of(call: MatrixProduct, address: Callable[[Buffer], int]) -> Gemm:
    """The column-major product that `call` asks for.

    Raises:
        ValueError: an operand has no unit stride or overlapping rows; the target is not row-major.
    """
    left_transposed, left_leading = _layout(call.left, call.m, call.k)
    right_transposed, right_leading = _layout(call.right, call.k, call.n)
    target_transposed, target_leading = _layout(call.target, call.m, call.n)
    if target_transposed:
        raise ValueError(f"the product's target {call.target.buffer} must be row-major")
    dtype, target = call.left.buffer.type.dtype, call.target.buffer.type.dtype
    return Gemm(
        dtype=dtype,
        transpose_a=right_transposed,
        transpose_b=left_transposed,
        m=call.n,
        n=call.m,
        k=call.k,
        a=_first(call.right, address),
        lda=right_leading,
        stride_a=call.right.batch_stride,
        b=_first(call.left, address),
        ldb=left_leading,
        stride_b=call.left.batch_stride,
        c=_first(call.target, address),
        ldc=target_leading,
        stride_c=call.target.batch_stride,
        batch=call.batch,
        dtype_c=None if target == dtype else target,
        precision=call.precision,
    )


def _first(operand: MatrixOperand, address: Callable[[Buffer], int]) -> int:
    return address(operand.buffer) + operand.offset * operand.buffer.type.dtype.itemsize


def _layout(operand: MatrixOperand, rows: int, columns: int) -> tuple[bool, int]:
    """Whether `operand` is stored column by column, and its leading dimension.

    The stride of an axis of extent 1 is never used, and may be anything.
    """
    row_stride = operand.row_stride if rows > 1 else columns
    column_stride = operand.column_stride if columns > 1 else rows
    if (operand.column_stride == 1 or columns == 1) and row_stride >= columns:
        return False, row_stride
    if (operand.row_stride == 1 or rows == 1) and column_stride >= rows:
        return True, column_stride
    raise ValueError(
        f"a library product cannot read {operand.buffer} as {rows} by {columns} with strides "
        f"({operand.row_stride}, {operand.column_stride}): one must be 1, and the other at least "
        "the extent it spans; copy the operand first"
    )


def triangular_solve(
    call: TriangularSolve, address: Callable[[Buffer], int]
) -> Callable[[Cublas], None]:
    """What issues the solution of each system.

    A row-major A X = B is, read column-major, Xᵀ Aᵀ = Bᵀ, and the other triangle of Aᵀ counts.
    """
    (right,), (matrix,) = call.updated, call.read
    n, k = call.matrix
    size, dtype = call.dtype.itemsize, call.dtype
    b, a = right.address(address), matrix.address(address)
    pairs = [(b + i * n * k * size, a + i * n * n * size) for i in range(call.batch)]
    lower, unit = bool(call.attrs["lower"]), bool(call.attrs["unit"])

    def issue(library: Cublas) -> None:
        for target, triangle in pairs:
            library.solve_triangle(dtype, not lower, unit, k, n, triangle, target)

    return issue


def eliminated_batch(
    call: BatchedLU, address: Callable[[Buffer], int], table: int
) -> Callable[[Cublas], None]:
    """What issues the LU factorizations of a batch, at once."""
    pivots, info = (array.address(address) for array in call.results)
    dtype, n = call.dtype, call.matrix[0]
    return lambda library: library.eliminate_batch(dtype, n, table, pivots, info, call.batch)


def solved_batch(
    call: BatchedSolve, address: Callable[[Buffer], int], table: int
) -> Callable[[Cublas], None]:
    """What issues the solutions of a batch, at once; as `triangular_solve`."""
    n, k = call.matrix
    lower, unit, dtype = bool(call.attrs["lower"]), bool(call.attrs["unit"]), call.dtype
    sides = table + 8 * call.batch
    return lambda library: library.solve_triangle(
        dtype, not lower, unit, k, n, table, sides, call.batch
    )


class Cublas:
    """A cuBLAS handle on one stream.

    The handle lives as long as the process: captured nodes use its workspace only, which the slot
    table of their graph owns.
    """

    def __init__(self, stream: int) -> None:
        self._cublas = binding("cublas")
        self._stream = stream
        self._handle: int = self._cublas.create()

    def use_workspace(self, pointer: int, nbytes: int) -> None:
        """Set the stream, then the workspace, which setting the stream resets."""
        self._cublas.set_stream(self._handle, self._stream)
        self._cublas.set_workspace(self._handle, pointer, nbytes)

    def multiply(self, gemm: Gemm) -> None:
        """Issue the product. float16 and bfloat16 accumulate in float32."""
        strides = ((gemm.stride_a,), (gemm.stride_b,), (gemm.stride_c,))
        self._multiply(self._cublas.gemm_strided_batched_ex, gemm, *strides)

    def multiply_by_pointer(self, gemm: Gemm) -> None:
        """Issue the product whose addresses are those of pointer arrays, as `multiply`."""
        self._multiply(self._cublas.gemm_batched_ex, gemm)

    def _multiply(
        self,
        routine: Callable[..., None],
        gemm: Gemm,
        stride_a: tuple[int, ...] = (),
        stride_b: tuple[int, ...] = (),
        stride_c: tuple[int, ...] = (),
    ) -> None:
        """Call a routine, which takes the strides of batches or none."""
        data, compute, scale = _types(gemm.dtype, gemm.precision)
        data_c = data if gemm.dtype_c is None else _types(gemm.dtype_c)[0]
        operation = self._cublas.Operation
        one, zero = np.ones((), scale), np.zeros((), scale)
        routine(
            self._handle,
            operation.T if gemm.transpose_a else operation.N,
            operation.T if gemm.transpose_b else operation.N,
            gemm.m,
            gemm.n,
            gemm.k,
            one.ctypes.data,
            *(gemm.a, data, gemm.lda, *stride_a),
            *(gemm.b, data, gemm.ldb, *stride_b),
            zero.ctypes.data,
            *(gemm.c, data_c, gemm.ldc, *stride_c),
            gemm.batch,
            compute,
            self._cublas.GemmAlgo.DEFAULT,
        )

    def eliminate_batch(
        self, dtype: np.dtype[Any], n: int, table: int, pivots: int, info: int, batch: int
    ) -> None:
        """Issue the LU factorizations of the matrices at the addresses in a table."""
        routine = getattr(self._cublas, f"{_PREFIXES[str(dtype)]}getrf_batched")
        routine(self._handle, n, table, n, pivots, info, batch)

    def solve_triangle(
        self,
        dtype: np.dtype[Any],
        lower: bool,
        unit: bool,
        m: int,
        n: int,
        a: int,
        b: int,
        batch: int = 0,
    ) -> None:
        """Issue the solution of X A = B, written to B, for column-major B of m by n.

        Of a `batch`, `a` and `b` are tables of addresses. One row, as that of one right-hand side,
        is a vector: Aᵀ x = b.
        """
        cublas, prefix, one = self._cublas, _PREFIXES[str(dtype)], np.ones((), dtype)
        triangle = cublas.FillMode.LOWER if lower else cublas.FillMode.UPPER
        diagonal = cublas.DiagType.UNIT if unit else cublas.DiagType.NON_UNIT
        if m == 1 and not batch:
            solve = getattr(cublas, f"{prefix}trsv")
            solve(self._handle, triangle, cublas.Operation.T, diagonal, n, a, n, b, 1)
            return
        getattr(cublas, f"{prefix}trsm{'_batched' if batch else ''}")(
            self._handle,
            cublas.SideMode.RIGHT,
            triangle,
            cublas.Operation.N,
            diagonal,
            m,
            n,
            one.ctypes.data,
            a,
            n,
            b,
            m,
            *([batch] if batch else []),
        )


def _types(
    dtype: np.dtype[Any], precision: Precision = "float32"
) -> tuple[int, int, np.dtype[Any]]:
    """CuBLAS's types of elements and of the computation, and the dtype of the scale factors."""
    compute_types = binding("cublas").ComputeType
    table: dict[Any, tuple[int, int, Any]] = {
        np.dtype(np.float16): (_CUDA_R_16F, compute_types.COMPUTE_32F, np.float32),
        bfloat16: (_CUDA_R_16BF, compute_types.COMPUTE_32F, np.float32),
        np.dtype(np.float32): (_CUDA_R_32F, compute_types.COMPUTE_32F, np.float32),
        np.dtype(np.float64): (_CUDA_R_64F, compute_types.COMPUTE_64F, np.float64),
        np.dtype(np.complex64): (_CUDA_C_32F, compute_types.COMPUTE_32F, np.complex64),
        np.dtype(np.complex128): (_CUDA_C_64F, compute_types.COMPUTE_64F, np.complex128),
    }
    if dtype not in table:
        raise TypeError(f"no library product for dtype {dtype}; use {', '.join(map(str, table))}")
    data, compute, scale = table[dtype]
    if precision == "tf32" and compute == compute_types.COMPUTE_32F:
        compute = compute_types.COMPUTE_32F_FAST_TF32
    return int(data), int(compute), np.dtype(scale)
