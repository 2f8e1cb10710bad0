"""Factorizations of matrices, and solutions of triangular systems, as library calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from lowering.plan.calls.library_call import LibraryCall, StridedArray, by_reference
from lowering.plan.nests.buffer_fields import Reads, Writes
from tracegraph.ir.op import Op
from tracegraph.ir.record import record


@record
class Factorization(LibraryCall):
    """An op of `tracegraph.ops.factorizations`, its operands and results in memory."""

    noun: ClassVar[str] = "a factorization"

    op: Op
    attrs: Mapping[str, Any]
    matrices: Reads[tuple[StridedArray, ...]]
    results: Writes[tuple[StridedArray, ...]]

    @property
    def operations(self) -> int:
        """About as many as a product of the matrices has."""
        *batch, m, n = 1, *self.matrices[-1].shape  # it may be a vector, of pivots
        return 2 * int(np.prod(batch, dtype=np.int64)) * m * n * self.matrices[0].shape[-1]

    @property
    def name(self) -> str:
        shapes = [f"{'x'.join(map(str, matrix.shape))}" for matrix in self.matrices]
        return f"{self.op.name} {', '.join(shapes)}"

    @property
    def run_host(self) -> Callable[..., object]:
        return by_reference(self.op, self.attrs, len(self.matrices))
