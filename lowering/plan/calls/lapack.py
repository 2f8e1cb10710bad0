"""Routines of LAPACK as library calls, which update arrays in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, ClassVar

import numpy as np

from lowering.plan.calls.library_call import LibraryCall, StridedArray, by_reference
from lowering.plan.nests.buffer_fields import Reads, Updates, Writes
from tracegraph.ir.op import Op
from tracegraph.ir.record import record


@record
class LapackRoutine(LibraryCall):
    """An op of `lowering.algorithms.lapack`, for each matrix of a batch.

    `updated` are the arrays that it updates, `read` those that it reads only, `results` those that
    it writes only. All are contiguous.
    """

    noun: ClassVar[str] = "a factorization"

    op: Op
    attrs: Mapping[str, Any]
    updated: Updates[tuple[StridedArray, ...]]
    read: Reads[tuple[StridedArray, ...]]
    results: Writes[tuple[StridedArray, ...]]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of its matrices."""
        return self.updated[0].buffer.type.dtype

    @property
    def matrix(self) -> tuple[int, int]:
        """The extents of a matrix that it updates, as memory has them."""
        rows, columns = self.updated[0].shape[-2:]
        return rows, columns

    @property
    def batch(self) -> int:
        """The number of matrices."""
        return prod(self.updated[0].shape[:-2])

    @property
    def operations(self) -> int:
        """About as many as of a QR factorization, the most of all."""
        rows, columns = self.matrix
        return 2 * self.batch * rows * columns * min(rows, columns)

    @property
    def name(self) -> str:
        return f"{self.op.name} {'x'.join(map(str, self.updated[0].shape))}"

    @property
    def run_host(self) -> Callable[..., object]:
        return by_reference(self.op, self.attrs, len(self.inputs))


@record
class TriangularSolve(LapackRoutine):
    """The op trsm, which is one of BLAS."""

    noun: ClassVar[str] = "a triangular solve"

    @property
    def operations(self) -> int:
        rows, columns = self.matrix
        return self.batch * rows * rows * columns


@record
class BatchedCholesky(LapackRoutine):
    """The op potrf_batched."""

    @property
    def batches(self) -> tuple[StridedArray, ...]:
        return self.updated


@record
class BatchedLU(LapackRoutine):
    """The op getrf_batched."""

    @property
    def batches(self) -> tuple[StridedArray, ...]:
        return self.updated


@record
class BatchedSolve(TriangularSolve):
    """The op trsm_batched."""

    @property
    def batches(self) -> tuple[StridedArray, ...]:
        return (*self.read, *self.updated)
