"""Algorithms for small matrices as kernels: one block of threads for each, or less where many are
tiny. The kernels are in `lane_kernels` and `block_kernels`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from lowering.algorithms import by_library
from lowering.algorithms import svd as one_sided
from lowering.algorithms.parts import above, diagonal
from lowering.algorithms.small_matrices import block_kernels, lane_kernels
from lowering.algorithms.small_matrices.matrix_kernels import applied, declared, orthogonal_columns
from tracegraph import numpy as tnp
from tracegraph.ir.op import Op, get
from tracegraph.ir.types import ArrayType

MOST_WRITTEN_OUT = 16
LEAST_WRITTEN_OUT = 1 << 16
"""The most rows of a system whose solution is written out, and the least elements of all right-hand
sides: planning takes n²/2 ms."""


def are_small(name: str, types: Sequence[ArrayType]) -> bool:
    """Whether there are kernels for an op on operands of these types.

    Those for tridiagonal systems, in `partitions`, are for all.
    """
    if name == "tridiagonal_solve":
        return True
    a = types[0]
    m, n = a.shape[-2:]
    if name in ("svd", "pinv"):
        k = min(m, n)
        return k >= 2 and _is_square_small("orthogonal_columns", a.dtype, k)
    if name == "qr":
        return block_kernels.fits(name, a.dtype, (m, n))
    if m != n or n < 2:
        return False
    if name == "triangular_solve":
        columns = types[-1].shape[-1]
        return lane_kernels.solves(n, columns) or block_kernels.solves(n, columns)
    return _is_square_small(name, a.dtype, n)


def _is_square_small(name: str, dtype: np.dtype[Any], n: int) -> bool:
    return n <= lane_kernels.MOST_ROWS or block_kernels.fits(name, dtype, (n, n))


def cholesky(a: Any) -> Any:
    """The lower triangular L of A = L Lᴴ; NaN in all of it if A is not positive definite."""
    return _factored("cholesky", get("cholesky"), a)


def lu(a: Any) -> Any:
    """The factors, packed, the pivots, and the rows in the order of the factors."""
    return _factored("lu", get("lu"), a)


def eigh(a: Any, *, vectors: bool = True) -> Any:
    """The eigenvalues in ascending order, and the eigenvectors as columns."""
    return _factored("eigh" if vectors else "eigvalsh", get("eigh"), a, vectors=vectors)


def qr(a: Any) -> Any:
    """Q with orthonormal columns and upper triangular R, reduced."""
    kernel = declared("qr", get("qr"), a.dtype, a.shape[-2:], (), block_kernels.form)
    return applied(kernel, (a,))


def svd(a: Any, *, vectors: bool = True) -> Any:
    """U, the singular values in descending order, and Vᴴ of A = U S Vᴴ, reduced."""
    return one_sided.svd(a, vectors=vectors, parts=_PARTS)


def pinv(a: Any, rtol: Any) -> Any:
    """V S⁺ Uᴴ, where S⁺ inverts the singular values above `rtol` of the largest."""
    return one_sided.pinv(a, rtol, parts=_PARTS)


def rotated(a: Any) -> tuple[Any, Any]:
    """Columns rotated until they are orthogonal, in descending order of length, and the lengths.

    Elements are about 1 at most.
    """
    columns, lengths = _factored("orthogonal_columns", orthogonal_columns, a)
    return columns, lengths


def orthonormal_and_triangular(a: Any) -> tuple[Any, Any]:
    """Q and R of matrices with at least as many rows as columns, which may differ from those of
    LAPACK in signs.

    Of tall matrices, blocks of rows are factored side by side, and then the factors below each
    other (Demmel, Grigori, Hoemmen and Langou, Communication-optimal parallel and sequential QR and
    LU factorizations, 2012).
    """
    *batch, m, n = a.shape
    if block_kernels.fits("qr", a.dtype, (m, n)):
        q, r = qr(a)
        return q, r
    height = block_kernels.rows_of_part(a.dtype, n)
    if height is None:
        few = prod(batch) <= _FEW
        q, r = by_library.qr(a) if few else one_sided.PROGRAMS.qr(a)
        return q, r
    parts = -(-m // height)
    zeros = tnp.zeros((*batch, parts * height - m, n), a.dtype)
    inner, upper = qr(above(a, zeros).reshape((*batch, parts, height, n)))
    outer, r = orthonormal_and_triangular(upper.reshape((*batch, parts * n, n)))
    q = inner @ outer.reshape((*batch, parts, n, n))
    return q.reshape((*batch, parts * height, n))[..., :m, :], r


_FEW = 4
"""Matrices that the library factors one after the other."""

_PARTS = one_sided.Parts(orthonormal_and_triangular, rotated)


def triangular_solve(a: Any, b: Any, *, lower: bool, unit: bool = False) -> Any:
    """The x of A x = b, from one triangle of A."""
    n, columns = b.shape[-2:]
    if n <= MOST_WRITTEN_OUT and b.size >= LEAST_WRITTEN_OUT:
        return _written_out(a, b, lower=lower, unit=unit)
    flags = ("lower", lower), ("unit", unit)
    kind = f"{'unit_' if unit else ''}{'lower' if lower else 'upper'}_solve"
    op, form = get("triangular_solve"), lane_kernels.form
    name, count = kind, prod(a.shape[:-2])
    sizes: tuple[int, ...] = count, columns, lane_kernels.columns_of_group(n, count, columns)
    if n > lane_kernels.MOST_ROWS:
        form, sizes = block_kernels.form_of_solve, (count, columns)
        name = kind if columns < block_kernels.FEW_COLUMNS else f"{kind}_by_groups"
    elif lane_kernels.has_thread_for_each(columns):
        name, sizes = f"{kind}_by_columns", (columns,)
    return applied(declared(name, op, a.dtype, (n, n), flags, form), (a, b), *sizes)


def _written_out(a: Any, b: Any, *, lower: bool, unit: bool) -> Any:
    """The rows of x one by one, as expressions of a point of each column: one map computes all of
    them, what the right-hand sides are made of, and what is made of x.
    """
    n = a.shape[-1]
    inverse = 1 / diagonal(a)
    rows: dict[int, Any] = {}
    for k in range(n) if lower else reversed(range(n)):
        row = b[..., k, :]
        for j, known in rows.items():
            row = row - a[..., k, j, None] * known
        rows[k] = row if unit else row * inverse[..., k, None]
    return tnp.stack([rows[k] for k in range(n)], axis=-2)


def _factored(name: str, op: Op, a: Any, **attrs: Any) -> Any:
    count, shape = prod(a.shape[:-2]), a.shape[-2:]
    options = tuple(attrs.items())
    if block_kernels.is_faster(name, shape):
        return applied(declared(name, op, a.dtype, shape, options, block_kernels.form), (a,))
    return applied(declared(name, op, a.dtype, shape, options, lane_kernels.form), (a,), count)
