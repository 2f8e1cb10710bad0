"""Matrix products (GEMM) as library calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from lowering.plan.calls.library_call import LibraryCall, StridedArray
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.buffer_fields import HoldsBuffers, Names, Reads, Writes
from lowering.plan.nests.strides import common_stride
from lowering.plan.nests.work import Work, product_work
from tracegraph.dtypes import bfloat16, is_half
from tracegraph.ir.record import record
from tracegraph.ir.types import ArrayType
from tracegraph.modes import Precision

LIBRARY_DTYPES = frozenset(
    {bfloat16, *map(np.dtype, (np.float16, np.float32, np.float64, np.complex64, np.complex128))}
)

LIBRARY_MAX = 2**31 - 1
"""Extents and strides that the library takes as 32-bit integers. Its calls for larger ones sum
serially: a product of two vectors of 2³¹ bfloat16 took 82 s, and its sum stopped at 2²⁴ (H200)."""


FEW_ROWS = 32
"""Rows of each of many products that share their right factor, up to which these are copied to be
rows of one product, where they are apart in memory. An estimate: tiles of libraries have 64 or 128
rows, and a copy moves each element twice."""


@record
class MatrixOperand(HoldsBuffers):
    """A matrix, or a batch of them, inside a buffer: strides and offset in elements."""

    buffer: Names[Buffer]
    offset: int
    batch_stride: int
    row_stride: int
    column_stride: int

    def array(self, batch: int, rows: int, columns: int) -> StridedArray:
        """The operand as an array, without the batch axis if there is one product."""
        shape, strides = (rows, columns), (self.row_stride, self.column_stride)
        if batch == 1:
            return StridedArray(self.buffer, self.offset, shape, strides)
        return StridedArray(
            self.buffer, self.offset, (batch, *shape), (self.batch_stride, *strides)
        )

    def __str__(self) -> str:
        strides = (self.batch_stride, self.row_stride, self.column_stride)
        start = f"+{self.offset}" if self.offset else ""
        return f"{self.buffer}{start}:{','.join(map(str, strides))}"


@record
class MatrixProduct(LibraryCall):
    """target[b] = left[b] @ right[b]: `batch` products of (m, k) by (k, n).

    If it finds its matrices `by_pointer`, they may be arguments and results, which move. Products
    of float32 have at least the `precision`. The target may have another dtype than the factors,
    that in which their products are summed.
    """

    noun: ClassVar[str] = "a product"
    alignment: ClassVar[int] = 16  # of what its kernels may load at once

    batch: int
    m: int
    n: int
    k: int
    left: Reads[MatrixOperand]
    right: Reads[MatrixOperand]
    target: Writes[MatrixOperand]
    by_pointer: bool = False
    precision: Precision = "float32"

    @property
    def inputs(self) -> tuple[StridedArray, ...]:
        return (
            self.left.array(self.batch, self.m, self.k),
            self.right.array(self.batch, self.k, self.n),
        )

    @property
    def outputs(self) -> tuple[StridedArray, ...]:
        return (self.target.array(self.batch, self.m, self.n),)

    @property
    def batches(self) -> tuple[StridedArray, ...]:
        return self.operands if self.by_pointer else ()

    @property
    def fixed_buffers(self) -> frozenset[Buffer]:
        return frozenset() if self.by_pointer else self.reads | self.writes

    @property
    def operations(self) -> int:
        return 2 * self.batch * self.m * self.n * self.k

    @property
    def work(self) -> Work:
        nbytes = sum([array.distinct_bytes for array in self.operands])
        dtype = self.left.buffer.type.dtype
        return product_work(nbytes, self.operations, dtype, self.precision)

    @property
    def name(self) -> str:
        batch = f"{self.batch} x " if self.batch > 1 else ""
        return f"product {batch}{self.m}x{self.k}x{self.n}"

    @property
    def title(self) -> str:
        lower = "" if self.precision == "float32" else f" in {self.precision}"
        return f"matmul {self.batch} x ({self.m}, {self.k}) @ ({self.k}, {self.n}){lower}"

    @property
    def text(self) -> str:
        sizes = f"batch={self.batch}, m={self.m}, n={self.n}, k={self.k}"
        moves = any(buffer.space in ("input", "output") for buffer in self.reads | self.writes)
        how = ", by pointer" if self.by_pointer and moves else ""
        lower = "" if self.precision == "float32" else f", {self.precision}"
        return f"matmul {self.target} = {self.left} @ {self.right}  ({sizes}{lower}{how})"

    @property
    def run_host(self) -> Callable[..., object]:
        return _half_product if is_half(self.left.buffer.type.dtype) else np.matmul


def _half_product(
    left: np.ndarray[Any, Any], right: np.ndarray[Any, Any], out: np.ndarray[Any, Any]
) -> None:
    """16-bit floats are multiplied and summed in float32, and rounded once if at all."""
    out[...] = np.matmul(left.astype(np.float32), right.astype(np.float32)).astype(out.dtype)


def library_takes(left: ArrayType, right: ArrayType) -> bool:
    """Whether the library has the product, for its dtype and extents, and it computes anything."""
    *batch, m, k = left.shape
    n = right.shape[-1]
    extents = (*left.shape, *right.shape)
    is_counted = k > 0 and 0 not in (*batch, m, n) and max(extents) <= LIBRARY_MAX
    return left.dtype in LIBRARY_DTYPES and is_counted


def as_matrices(array: StridedArray | None) -> MatrixOperand | None:
    """The array as a batch of matrices, if the library takes it as one."""
    if array is None:
        return None
    shape, strides = array.shape, array.strides
    batch = common_stride(shape[:-2], strides[:-2])
    (rows, columns), (row, column) = shape[-2:], strides[-2:]
    row, column = _leading(rows, columns, row, column)
    if batch is None or batch < 0 or not _is_accepted(rows, columns, row, column):
        return None
    return MatrixOperand(array.buffer, array.offset, batch, row, column)


def _leading(rows: int, columns: int, row: int, column: int) -> tuple[int, int]:
    """Strides that the library accepts, given that along one element any stride will do."""
    if rows == 1 and columns == 1:
        return 1, 1
    if columns == 1:
        return (row, 1) if row != 1 else (1, max(rows, 1))
    if rows == 1:
        return (max(columns, 1), 1) if column == 1 else (1, column)
    return row, column


def _is_accepted(rows: int, columns: int, row: int, column: int) -> bool:
    if max(row, column) > LIBRARY_MAX:
        return False
    return (column == 1 and row >= max(columns, 1)) or (row == 1 and column >= max(rows, 1))
