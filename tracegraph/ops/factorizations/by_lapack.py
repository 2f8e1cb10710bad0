"""LAPACK and BLAS on the host, through SciPy: the references of factorizations call them.

Each function takes one matrix. A call takes 1 µs and more, so where many small matrices are
factored, NumPy calls for all of them at once are faster: `are_together` says where.

SciPy's routines are imported by the first call, without the rest of it, which takes 0.1 s.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tracegraph.ops.factorizations.matrices import NDArray
from tracegraph.single_imports import imported_alone

_LETTERS = {np.dtype(name): letter for name, letter in zip("fdFD", "sdcz", strict=True)}
"""What the names of routines begin with."""

_SMALL = 8
"""The extent of matrices from which each has a call of its own, however many there are."""


def are_together(extent: int, count: int) -> bool:
    """Whether `count` matrices of this extent are factored faster at once than by one call each.

    A call takes 1 µs for each matrix; elimination at once some 12 µs for each column (one core of a
    server, 2026: 2 x 2 from 16 matrices on, 4 x 4 from 64 on, 8 x 8 from 256 on).
    """
    return extent <= _SMALL and count > 4 * extent * extent


@cache
def _routine(library: str, name: str, dtype: np.dtype[Any]) -> Callable[..., Any]:
    # what `scipy.linalg.get_lapack_funcs` and `get_blas_funcs` find
    module = imported_alone(f"scipy.linalg._f{library}", ("scipy.linalg",))
    found: Callable[..., Any] = getattr(module, _LETTERS.get(dtype, "d") + name)
    return found


def getrf(a: NDArray) -> tuple[NDArray, NDArray]:
    """The packed LU factors of a matrix, and the row that each row was swapped with, from 0.

    A column without a pivot leaves 0 on the diagonal of U, and is not divided by it.
    """
    factors, pivots, _ = _routine("lapack", "getrf", a.dtype)(
        np.array(a, order="F"), overwrite_a=True
    )
    return factors, pivots


def trsm(a: NDArray, b: NDArray, *, lower: bool, unit: bool) -> NDArray:
    """The x of a x = b, from one triangle of `a`, whose diagonal has no zero.

    The routine takes columns in order: it sees row-major matrices transposed, and xᵀ aᵀ = bᵀ.
    """
    solve = _routine("blas", "trsm", a.dtype)
    given = np.array(b, order="C").T
    found: NDArray = solve(1, a.T, given, side=1, lower=not lower, diag=unit, overwrite_b=True)
    return found.T


def gtsv(dl: NDArray, d: NDArray, du: NDArray, b: NDArray) -> NDArray | None:
    """The x of a tridiagonal system; None if its matrix is singular.

    `dl` and `du` have one element less than `d`.
    """
    *_, x, info = _routine("lapack", "gtsv", d.dtype)(dl, d, du, b)
    return None if info else x
