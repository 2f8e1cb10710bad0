"""Factorizations as cuSOLVER calls, matrix by matrix.

Matrices are column-major in the library: ours are their transposes. The workspace begins with the
status of calls whose result has none.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, ClassVar

from lowering.cuda.libraries.bindings import binding
from lowering.plan.calls.lapack import BatchedCholesky, LapackRoutine
from lowering.plan.nests.buffer import Buffer
from lowering.plan.target.hardware import ALIGNMENT

LOWER = 0
"""CUBLAS_FILL_MODE_LOWER: from the other triangle, cuSOLVER takes 1.4 times as long."""

PREFIXES = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


def factorization(
    call: LapackRoutine, address: Callable[[Buffer], int]
) -> Callable[[PreparedRoutine], None]:
    """What issues the factorization of each matrix."""
    arrays = [*call.updated, *call.read, *call.results]
    starts = [array.address(address) for array in arrays]
    steps = [prod(array.shape) * array.buffer.type.dtype.itemsize // call.batch for array in arrays]
    matrices = [
        tuple([start + k * step for start, step in zip(starts, steps, strict=True)])
        for k in range(call.batch)
    ]

    def issue(routine: PreparedRoutine) -> None:
        for addresses in matrices:
            routine.factor(*addresses)

    return issue


def factored_batch(
    call: BatchedCholesky, address: Callable[[Buffer], int], table: int
) -> Callable[[Cusolver], None]:
    """What issues the Cholesky factorizations of a batch, at once."""
    (info,) = call.results
    prefix, n, status = PREFIXES[str(call.dtype)], call.matrix[0], info.address(address)
    return lambda library: library.factor_batch(prefix, n, table, status, call.batch)


class PreparedRoutine:
    """A routine for matrices of one type, with the workspace that it needs."""

    def __init__(self, library: Any, handle: int, call: LapackRoutine) -> None:
        self._handle, self._call = handle, call
        self._n, self._m = call.matrix  # columns and rows as the library sees them
        name, self._prefix = call.op.name, PREFIXES[str(call.dtype)]
        self._library = library
        if name == "ungqr" and call.dtype.kind == "f":
            name = "orgqr"
        self._routine = self._function(name)
        shape = (self._m, self._n)
        match call.op.name:
            case "potrf":
                self._size = self._function("potrf_buffer_size")(handle, LOWER, self._n, 0, self._n)
            case "ungqr":
                size = self._function(f"{name}_buffer_size")
                self._size = size(handle, *shape, self._n, 0, self._m, 0)
            case _:
                self._size = self._function(f"{name}_buffer_size")(handle, *shape, 0, self._m)
        self.workspace_bytes = ALIGNMENT + self._size * call.dtype.itemsize
        self._status = self._work = 0

    def _function(self, name: str) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(self._library, self._prefix + name)
        return found

    def use_workspace(self, pointer: int, nbytes: int) -> None:
        """Use this memory from now on."""
        self._status, self._work = pointer, pointer + ALIGNMENT

    def factor(self, a: int, *others: int) -> None:
        """Issue the routine for a matrix, whose addresses are in the order of the call's arrays."""
        handle, m, n = self._handle, self._m, self._n
        match self._call.op.name:
            case "potrf":
                (info,) = others
                self._routine(handle, LOWER, n, a, n, self._work, self._size, info)
            case "getrf":
                order, pivots, info = others
                self._routine(handle, m, n, a, m, self._work, pivots, info)
                self._library.slaswp(handle, 1, order, m, 1, min(m, n), pivots, 1)
            case "geqrf":
                (tau,) = others
                self._routine(handle, m, n, a, m, tau, self._work, self._size, self._status)
            case "ungqr":
                (tau,) = others
                self._routine(handle, m, n, n, a, m, tau, self._work, self._size, self._status)


class Cusolver:
    """A cuSOLVER handle on one stream, which lives as long as the process."""

    prepared: ClassVar[type] = PreparedRoutine

    def __init__(self, stream: int) -> None:
        self._library = binding("cusolverDn")
        self._handle: int = self._library.create()
        self._library.set_stream(self._handle, stream)

    def prepare(self, call: LapackRoutine) -> PreparedRoutine:
        """A routine for the matrices of a call."""
        return PreparedRoutine(self._library, self._handle, call)

    def use_workspace(self, pointer: int, nbytes: int) -> None:
        """Nothing: each routine has its own, and those for batches need none."""

    def factor_batch(self, prefix: str, n: int, table: int, info: int, batch: int) -> None:
        """Issue the Cholesky factorizations of the matrices at the addresses in a table."""
        routine = getattr(self._library, f"{prefix}potrf_batched")
        routine(self._handle, LOWER, n, table, n, info, batch)
