"""Algorithms of ops that are written in tracegraph itself.

A backend that has no library call for an op runs its program from here. Such a program is planned
as any other: its loops run in every body, many matrices at once, in one kernel if scheduling finds
that faster.

    cholesky, triangular_solve, lu   by blocks: products do most of the work of large matrices
    pivots                           the order of rows after the swaps of lu
    qr                               Householder reflections, column by column
    tridiagonal                      elimination of one row after the other
    partitions                       kernels for tridiagonal systems
    eigh, svd                        Jacobi rotations, many at a time; pinv by svd
    jacobi, parts                    what those two share; what all do
    fourier_products                 Fourier transforms by roots of unity
    lapack, by_library               LAPACK's routines as ops; the same algorithms made of them
    small_matrices                   kernels for matrices of up to 128 rows
    kernel_texts, numbers            what the texts of kernels begin with
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal

from lowering.algorithms import by_library, fourier_products
from lowering.algorithms.cholesky import cholesky
from lowering.algorithms.eigh import eigh
from lowering.algorithms.lu import lu
from lowering.algorithms.partitions import partition_kernels
from lowering.algorithms.pivots import order_of_rows
from lowering.algorithms.qr import qr
from lowering.algorithms.small_matrices import small
from lowering.algorithms.small_matrices.small import are_small as are_small
from lowering.algorithms.svd import pinv, svd
from lowering.algorithms.triangular_solve import triangular_solve
from lowering.algorithms.tridiagonal import tridiagonal_solve
from tracegraph.ir.program import Program
from tracegraph.ir.types import ArrayType
from tracegraph.modes import unchanged
from tracegraph.passes import optimize
from tracegraph.tracing.trace import trace_program

ALGORITHMS: Mapping[str, Callable[..., Any]] = {
    "cholesky": cholesky,
    "eigh": eigh,
    "lu": lu,
    "order_of_rows": order_of_rows,
    "pinv": pinv,
    "qr": qr,
    "svd": svd,
    "triangular_solve": triangular_solve,
    "tridiagonal_solve": tridiagonal_solve,
}
"""By the name of an op, a function of its operands and attributes that returns its results."""

BY_LIBRARY: Mapping[str, Callable[..., Any]] = {
    "cholesky": by_library.cholesky,
    "lu": by_library.lu,
    "qr": by_library.qr,
    "triangular_solve": by_library.triangular_solve,
}
"""The same for backends with LAPACK's routines, for operands with elements: matrix by matrix."""

AT_ONCE: Mapping[str, Callable[..., Any]] = {
    "cholesky": by_library.cholesky_at_once,
    "lu": by_library.lu_at_once,
    "triangular_solve": by_library.triangular_solve_at_once,
}
"""Those by routines for a batch of many square matrices."""

SMALL: Mapping[str, Callable[..., Any]] = {
    "cholesky": small.cholesky,
    "eigh": small.eigh,
    "lu": small.lu,
    "pinv": small.pinv,
    "qr": small.qr,
    "svd": small.svd,
    "triangular_solve": small.triangular_solve,
    "tridiagonal_solve": partition_kernels.tridiagonal_solve,
}
"""Those with kernels, for backends that run CUDA C++: for matrices of up to 128 rows and columns,
in `svd` and `pinv` of a triangular factor; and for tridiagonal systems of any size."""

TRANSFORMS: Mapping[str, Callable[..., Any]] = {
    "fft": fourier_products.fft,
    "irfft": fourier_products.irfft,
    "rfft": fourier_products.rfft,
}
"""The same for ops that every backend has a library for, where a program must do without it."""

AlgorithmChoice = Literal["own", "library", "at once", "small"]
_FORMS = {
    "own": {**ALGORITHMS, **TRANSFORMS},
    "library": BY_LIBRARY,
    "at once": AT_ONCE,
    "small": SMALL,
}


@lru_cache(maxsize=256)
def program_of(
    name: str,
    types: tuple[ArrayType, ...],
    attrs: tuple[tuple[str, Any], ...],
    form: AlgorithmChoice = "own",
) -> Program:
    """The program of an op for operands of these types."""
    algorithm = _FORMS[form][name]

    def run(*operands: Any) -> tuple[Any, ...]:
        found = algorithm(*operands, **dict(attrs))
        return found if isinstance(found, tuple) else (found,)

    with unchanged():
        program = optimize(trace_program(run, types, name))
    assert not program.constants, f"the algorithm of {name} uses an array that it makes itself"
    return program
