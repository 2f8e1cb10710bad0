"""Factorizations of matrices, and solutions of triangular systems, as library calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from lowering.plan.calls.library_call import LibraryCall, StridedArray
from lowering.plan.nests.buffer import Buffer
from tracegraph.ir.op import Op
from tracegraph.ir.record import record, replace


@record
class Factorization(LibraryCall):
    """An op of `tracegraph.ops.factorizations`, its operands and results in memory."""

    noun: ClassVar[str] = "a factorization"

    op: Op
    attrs: Mapping[str, Any]
    matrices: tuple[StridedArray, ...]
    results: tuple[StridedArray, ...]

    @property
    def inputs(self) -> tuple[StridedArray, ...]:
        return self.matrices

    @property
    def outputs(self) -> tuple[StridedArray, ...]:
        return self.results

    @property
    def operations(self) -> int:
        """About as many as a product of the matrices has."""
        *batch, m, n = self.matrices[-1].shape
        return 2 * int(np.prod(batch, dtype=np.int64)) * m * n * self.matrices[0].shape[-1]

    @property
    def name(self) -> str:
        shapes = [f"{'x'.join(map(str, matrix.shape))}" for matrix in self.matrices]
        return f"{self.op.name} {', '.join(shapes)}"

    @property
    def run_host(self) -> Callable[..., object]:
        count, op, attrs = len(self.matrices), self.op, dict(self.attrs)

        def run(*operands: np.ndarray[Any, Any]) -> None:
            found = op.reference(*operands[:count], **attrs)
            values = found if isinstance(found, tuple) else (found,)
            for out, value in zip(operands[count:], values, strict=True):
                out[...] = value

        return run

    def with_buffers(self, names: Mapping[Buffer, Buffer]) -> Self:
        matrices, results = (
            tuple([array.with_buffers(names) for array in arrays])
            for arrays in (self.matrices, self.results)
        )
        return replace(self, matrices=matrices, results=results)
