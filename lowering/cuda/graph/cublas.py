"""Matrix products: a LibraryNode as a cuBLAS call.

cuBLAS is column-major. A row-major C = A B is, read column-major, Cᵀ = Bᵀ Aᵀ; so the operands swap
places, and an operand whose columns are contiguous in a row needs no transposition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lowering.cuda.interface import Gemm
from lowering.plan.buffer import Buffer
from lowering.plan.nodes import LibraryNode, MatrixOperand
from tracegraph.dtypes import bfloat16

WORKSPACE_BYTES = 32 << 20
"""What NVIDIA recommends for Hopper; with less, cuBLAS may choose slower kernels."""


def gemm_of(node: LibraryNode, address: Callable[[Buffer], int]) -> Gemm:
    """The column-major product that `node` asks for.

    Raises:
        ValueError: an operand has no unit stride or overlapping rows; the target is not row-major.
    """
    left_transposed, left_leading = _layout(node.left, node.m, node.k)
    right_transposed, right_leading = _layout(node.right, node.k, node.n)
    target_transposed, target_leading = _layout(node.target, node.m, node.n)
    if target_transposed:
        raise ValueError(f"the product's target {node.target.buffer} must be row-major")
    dtype = node.target.buffer.type.dtype
    return Gemm(
        dtype=dtype,
        transpose_a=right_transposed,
        transpose_b=left_transposed,
        m=node.n,
        n=node.m,
        k=node.k,
        a=_first(node.right, address),
        lda=right_leading,
        stride_a=node.right.batch_stride,
        b=_first(node.left, address),
        ldb=left_leading,
        stride_b=node.left.batch_stride,
        c=_first(node.target, address),
        ldc=target_leading,
        stride_c=node.target.batch_stride,
        batch=node.batch,
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


class Cublas:
    """A cuBLAS handle on one stream.

    The handle lives as long as the process: captured nodes use its workspace only, which the slot
    table of their graph owns.
    """

    def __init__(self, stream: int) -> None:
        from nvmath.bindings import cublas

        self._cublas = cublas
        self._stream = stream
        self._handle: int = cublas.create()

    def use_workspace(self, pointer: int, nbytes: int) -> None:
        """Set the stream, then the workspace, which setting the stream resets."""
        self._cublas.set_stream(self._handle, self._stream)
        self._cublas.set_workspace(self._handle, pointer, nbytes)

    def multiply(self, gemm: Gemm) -> None:
        """Issue the product. float16 and bfloat16 accumulate in float32; float32 is never TF32."""
        data, compute, scale = _types(gemm.dtype)
        operation = self._cublas.Operation
        one, zero = np.ones((), scale), np.zeros((), scale)
        self._cublas.gemm_strided_batched_ex(
            self._handle,
            operation.T if gemm.transpose_a else operation.N,
            operation.T if gemm.transpose_b else operation.N,
            gemm.m,
            gemm.n,
            gemm.k,
            one.ctypes.data,
            gemm.a,
            data,
            gemm.lda,
            gemm.stride_a,
            gemm.b,
            data,
            gemm.ldb,
            gemm.stride_b,
            zero.ctypes.data,
            gemm.c,
            data,
            gemm.ldc,
            gemm.stride_c,
            gemm.batch,
            compute,
            self._cublas.GemmAlgo.DEFAULT,
        )


def _types(dtype: np.dtype[Any]) -> tuple[int, int, np.dtype[Any]]:
    """CuBLAS's types of elements and of the computation, and the dtype of the scale factors."""
    from nvmath import CudaDataType as Data
    from nvmath.bindings.cublas import ComputeType as Compute

    table: dict[Any, tuple[int, int, Any]] = {
        np.dtype(np.float16): (Data.CUDA_R_16F, Compute.COMPUTE_32F, np.float32),
        bfloat16: (Data.CUDA_R_16BF, Compute.COMPUTE_32F, np.float32),
        np.dtype(np.float32): (Data.CUDA_R_32F, Compute.COMPUTE_32F, np.float32),
        np.dtype(np.float64): (Data.CUDA_R_64F, Compute.COMPUTE_64F, np.float64),
        np.dtype(np.complex64): (Data.CUDA_C_32F, Compute.COMPUTE_32F, np.complex64),
        np.dtype(np.complex128): (Data.CUDA_C_64F, Compute.COMPUTE_64F, np.complex128),
    }
    if dtype not in table:
        raise TypeError(f"no library product for dtype {dtype}; use {', '.join(map(str, table))}")
    data, compute, scale = table[dtype]
    return int(data), int(compute), np.dtype(scale)
