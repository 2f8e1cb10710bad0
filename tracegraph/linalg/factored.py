"""Triangular systems, Cholesky and LU factors, and solutions by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tracegraph.numpy as tnp
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.numpy.linalg.matrices import (
    adjoint,
    matrices,
    operands,
    require_square,
    require_success,
    square,
    with_batch,
)

__all__ = ["cho_factor", "cho_solve", "lu", "lu_factor", "lu_solve", "solve_triangular"]

_CHOLESKY, _LU, _TRIANGULAR_SOLVE = map(get, ("cholesky", "lu", "triangular_solve"))

_TRANSPOSES = {0: 0, "N": 0, 1: 1, "T": 1, 2: 2, "C": 2}


def solve_triangular(
    a: Any,
    b: Any,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
) -> Any:
    """The x of a x = b, where `a` is triangular: one triangle of it is read.

    With `trans` 1 or "T", of aᵀ x = b, with 2 or "C" of aᴴ x = b. A zero on the diagonal gives
    infinities and NaN if it is traced. `unit_diagonal` takes the diagonal as ones.

    Shape: that of `b`, (n,) or (…, n, k), with the batch of both.
    Dtype: the common one of both; float64 for integers.

    Raises:
        LinAlgError: matrices are not square; or one is singular, and nothing is traced.
        TypeError: LAPACK has no such dtype, as for float16.
        ValueError: extents do not fit, or there is no such `trans`.

    >>> tracegraph.linalg.solve_triangular([[2.0, 1.0], [0.0, 4.0]], [4.0, 8.0])
    array([1., 2.])
    """
    a, b = operands(a, b)

    def solve(a: Any, b: Any) -> Any:
        return _triangular(a, b, _transpose_number(trans), lower, unit_diagonal)

    return _solved("solve_triangular", a, b, solve)


def _triangular(a: Any, b: Any, transposed: int, lower: bool, unit: bool = False) -> Any:
    if transposed:
        a = adjoint(a) if transposed == 2 else tnp.matrix_transpose(a)
        lower = not lower
    return apply(_TRIANGULAR_SOLVE, a, b, lower=bool(lower), unit=bool(unit))


def _transpose_number(trans: int | str) -> int:
    if trans not in _TRANSPOSES:
        raise ValueError(f"trans must be 0, 1 or 2, or 'N', 'T' or 'C', got {trans!r}")
    return _TRANSPOSES[trans]


def _solved(name: str, a: Any, b: Any, solve: Callable[[Any, Any], Any]) -> Any:
    """What `solve` gives for matrices and right-hand sides of one batch, which may be a vector."""
    if a.ndim < 2:
        raise np.linalg.LinAlgError(f"{name}: needs matrices, got shape {a.shape}")
    require_square(a)
    right = b[:, None] if b.ndim == 1 else b
    if right.ndim < 2 or right.shape[-2] != a.shape[-1]:
        raise ValueError(f"{name}: {a.shape} and {b.shape} do not fit: rows of both must agree")
    batch = np.broadcast_shapes(a.shape[:-2], right.shape[:-2])
    found = solve(with_batch(a, batch), with_batch(right, batch))
    found = require_success(found, right, "Singular matrix")
    return found[..., 0] if b.ndim == 1 else found


def cho_factor(a: Any, lower: bool = False) -> tuple[Any, bool]:
    """The Cholesky factor of `a` for `cho_solve`: U of a = Uᴴ U, or with `lower` L of a = L Lᴴ.

    That triangle of `a` is read. A matrix that is not positive definite gives NaN if it is traced.
    Zeros stand in the other triangle, which SciPy leaves as it is.

    Returns:
        The factor, of the shape of `a`, and `lower`.

    Raises:
        LinAlgError: matrices are not square; or one is not positive definite, and nothing is
            traced.
        TypeError: LAPACK has no such dtype, as for float16.

    >>> tracegraph.linalg.cho_factor([[4.0, 2.0], [2.0, 5.0]])[0]
    array([[2., 1.],
           [0., 2.]])
    """
    a = square(a)
    found = apply(_CHOLESKY, a if lower else adjoint(a))
    found = require_success(found, a, "Matrix is not positive definite")
    return (found if lower else adjoint(found)), bool(lower)


def cho_solve(c_and_lower: tuple[Any, bool], b: Any) -> Any:
    """The x of a x = b, by what `cho_factor` gives for a.

    Shape: that of `b`, (n,) or (…, n, k), with the batch of both.
    Dtype: the common one of both; float64 for integers.

    Raises:
        LinAlgError: matrices are not square; or one is singular, and nothing is traced.
        TypeError: LAPACK has no such dtype, as for float16.
        ValueError: extents do not fit.

    >>> factor = tracegraph.linalg.cho_factor([[4.0, 2.0], [2.0, 5.0]])
    >>> tracegraph.linalg.cho_solve(factor, [6.0, 7.0])
    array([1., 1.])
    """
    c, lower = c_and_lower
    c, b = operands(c, b)

    def solve(c: Any, b: Any) -> Any:
        first, last = (0, 2) if lower else (2, 0)
        return _triangular(c, _triangular(c, b, first, lower), last, lower)

    return _solved("cho_solve", c, b, solve)


def lu_factor(a: Any) -> tuple[Any, Any]:
    """The LU factors of matrices, with partial pivoting, for `lu_solve`.

    Returns:
        U and, below its diagonal, L without its diagonal of ones: of the shape of `a`; and pivots:
        row i was swapped with row `piv[i]`, one after the other. They are int32, as many as the
        least of both extents.

    Raises:
        LinAlgError: there are fewer than two axes.
        TypeError: LAPACK has no such dtype, as for float16.

    >>> tracegraph.linalg.lu_factor([[0.0, 2.0], [1.0, 3.0]])
    (array([[1., 3.],
           [0., 2.]]), array([1, 1], dtype=int32))
    """
    factors, pivots, _ = apply(_LU, matrices(a))
    return factors, pivots


def lu_solve(lu_and_piv: tuple[Any, Any], b: Any, trans: int | str = 0) -> Any:
    """The x of a x = b, by what `lu_factor` gives for a; or of aᵀ x = b, or aᴴ x = b.

    A singular matrix gives infinities and NaN if it is traced. `trans` is as `solve_triangular` has
    it.

    Shape: that of `b`, (n,) or (…, n, k), with the batch of both.
    Dtype: the common one of both; float64 for integers.

    Raises:
        LinAlgError: matrices are not square; or one is singular, and nothing is traced.
        TypeError: LAPACK has no such dtype, as for float16.
        ValueError: extents do not fit, or there is no such `trans`.

    >>> factors = tracegraph.linalg.lu_factor([[0.0, 2.0], [1.0, 3.0]])
    >>> tracegraph.linalg.lu_solve(factors, [2.0, 4.0])
    array([1., 1.])
    """
    factors, pivots = lu_and_piv
    factors, b = operands(factors, b)
    number = _transpose_number(trans)

    def solve(factors: Any, b: Any) -> Any:
        n = factors.shape[-1]
        rows = apply(get("order_of_rows"), pivots, rows=n)
        rows = tnp.broadcast_to(rows, (*b.shape[:-2], n))[..., None]
        if number == 0:
            moved = tnp.take_along_axis(b, rows, axis=-2)
            half = _triangular(factors, moved, 0, True, True)
            return _triangular(factors, half, 0, False)
        half = _triangular(factors, b, number, False)
        found = _triangular(factors, half, number, True, True)
        return tnp.take_along_axis(found, _inverted(rows[..., 0])[..., None], axis=-2)

    return _solved("lu_solve", factors, b, solve)


def _inverted(rows: Any) -> Any:
    """The inverse of permutations."""
    place = tnp.arange(rows.shape[-1])
    return tnp.sum(tnp.where(rows[..., None, :] == place[:, None], place, 0), axis=-1)


def lu(a: Any, permute_l: bool = False) -> tuple[Any, ...]:
    """P, L and U of a = P L U, with partial pivoting; or with `permute_l` the product P L, and U.

    Shape: (…, m, m), (…, m, k) and (…, k, n) of (…, m, n), k being the least of m and n.
    Dtype: that of `a`, float64 for integers; P is real.

    Raises:
        LinAlgError: there are fewer than two axes.
        TypeError: LAPACK has no such dtype, as for float16.

    >>> tracegraph.linalg.lu([[0.0, 2.0], [1.0, 3.0]])[0]
    array([[0., 1.],
           [1., 0.]])
    """
    factors, _, rows = apply(_LU, matrices(a))
    m, k = factors.shape[-2], min(factors.shape[-2:])
    lower = tnp.tril(factors[..., :k], -1) + tnp.eye(m, k, dtype=factors.dtype)
    upper = tnp.triu(factors[..., :k, :])
    place = tnp.arange(m)
    permutation = tnp.astype(rows[..., None, :] == place[:, None], factors.real.dtype)
    if not permute_l:
        return permutation, lower, upper
    return tnp.take_along_axis(lower, _inverted(rows)[..., None], axis=-2), upper
