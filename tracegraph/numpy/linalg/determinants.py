"""Determinants, by LU factorization.

A determinant is a polynomial of the elements. So it has derivatives of every order, also at
singular matrices, where neither the factors nor the inverse have any. Rules here give these.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.numpy.axes import matrix_transpose
from tracegraph.numpy.dispatching.attached import derivative_rule, with_derivative
from tracegraph.numpy.dispatching.dispatch import as_array, numpy_function
from tracegraph.numpy.elementwise import where
from tracegraph.numpy.generated import arange, identity
from tracegraph.numpy.joining import stack
from tracegraph.numpy.linalg.matrices import square, with_batch
from tracegraph.numpy.reductions import max as largest
from tracegraph.numpy.reductions import prod as product
from tracegraph.numpy.reductions import sum
from tracegraph.numpy.selecting import diagonal, take_along_axis
from tracegraph.numpy.ufuncs import absolute, equal, less_equal, log, not_equal, sign

__all__ = ["det", "slogdet"]

_LU, _TRIANGULAR_SOLVE = get("lu"), get("triangular_solve")

SlogdetResult: Any = type(np.linalg.slogdet(np.eye(1)))
"""NumPy's class, which it does not export."""

_BY_MINORS = 3
"""Up to this number of rows, cofactors are sums of a few products."""


@numpy_function
def det(a: Any) -> Any:
    """The determinants of square matrices.

    They have derivatives at singular matrices as well.

    Shape: that of `a` without its last two axes.
    Dtype: that of `a`; float64 for integers.

    Raises:
        LinAlgError: the matrices are not square.
        TypeError: LAPACK has no such dtype, as for float16.

    >>> tnp.linalg.det([[1.0, 2.0], [3.0, 5.0]]).round(6)
    np.float64(-1.0)
    """
    a = square(a)
    factors, pivots, rows = apply(_LU, a)
    parity = _parity(pivots, a)
    value = product(diagonal(factors, 0, -2, -1), axis=-1) * parity
    return with_derivative(value, "det", a, constants=(factors, rows, parity))


@numpy_function
def slogdet(a: Any) -> Any:
    """The signs of determinants, and the logarithms of their sizes: `sign`, `logabsdet`.

    Of a singular matrix, 0 and -inf, without a finite derivative.

    Shape: that of `a` without its last two axes, of both.
    Dtype: that of `a`, float64 for integers; the logarithm is real.

    Raises:
        LinAlgError: the matrices are not square.
        TypeError: LAPACK has no such dtype, as for float16.

    >>> tnp.linalg.slogdet([[0.0, 1.0], [1.0, 0.0]]).sign
    np.float64(-1.0)
    """
    a = square(a)
    factors, pivots, _ = apply(_LU, a)
    diagonal_ = diagonal(factors, 0, -2, -1)
    signs = product(sign(diagonal_), axis=-1) * _parity(pivots, a)
    return SlogdetResult(signs, sum(log(absolute(diagonal_)), axis=-1))


def _parity(pivots: Any, a: Any) -> Any:
    """-1 or 1, in the dtype of the matrices, for odd or even permutations."""
    swaps = sum(not_equal(pivots, arange(a.shape[-1])), axis=-1)
    return as_array(1 - 2 * (swaps % 2), a.dtype)


@derivative_rule("det")
def _of_det(value: Any, a: Any, factors: Any, rows: Any, parity: Any, *, tangents: Any) -> Any:
    """The sum of cofactors times a'."""
    n = a.shape[-1]
    if n <= _BY_MINORS:
        cofactors = _by_minors(a)
    else:
        cofactors = _by_factors(factors, rows, parity)
        cofactors = with_derivative(cofactors, "cofactors", a, value, factors, rows, parity)
    return sum(cofactors * tangents[0], axis=(-2, -1))


def _by_minors(a: Any) -> Any:
    """The cofactors of at most three rows and columns."""
    n = a.shape[-1]
    if n < 2:
        return a * 0 + a.dtype.type(1)
    x = [[a[..., i, j] for j in range(n)] for i in range(n)]
    if n == 2:
        found = [[x[1][1], -x[1][0]], [-x[0][1], x[0][0]]]
    else:
        # the two other rows and columns, in cyclic order: the sign is in it
        found = [
            [
                x[(i + 1) % 3][(j + 1) % 3] * x[(i + 2) % 3][(j + 2) % 3]
                - x[(i + 1) % 3][(j + 2) % 3] * x[(i + 2) % 3][(j + 1) % 3]
                for j in range(3)
            ]
            for i in range(3)
        ]
    return stack([stack(row, axis=-1) for row in found], axis=-2)


def _by_factors(factors: Any, rows: Any, parity: Any) -> Any:
    """The determinant times the transposed inverse, both of factors whose pivots are not zero.

    Pivots below the rounding of the largest are moved there: cofactors are continuous.
    """
    pivots = diagonal(factors, 0, -2, -1)
    spacing = np.finfo(factors.dtype).eps
    _, scale, is_small = small_pivots(pivots, spacing)
    moved = where(is_small, (scale * spacing).astype(factors.dtype), pivots)
    eye = identity(factors.shape[-1], factors.dtype)
    whole = where(equal(eye, 1), moved[..., None, :], factors)
    found = (product(moved, axis=-1) * parity)[..., None, None] * inverse_of(whole, rows)
    return matrix_transpose(found)


def small_pivots(pivots: Any, limit: Any) -> tuple[Any, Any, Any]:
    """The sizes of pivots, the largest or 1, kept as an axis, and which are up to `limit` of it."""
    size = absolute(pivots)
    scale = largest(size, axis=-1, keepdims=True)
    scale = where(equal(scale, 0), scale.dtype.type(1), scale)
    return size, scale, less_equal(size, scale * scale.dtype.type(limit))


def inverse_of(factors: Any, rows: Any) -> Any:
    """The inverse of matrices that are factored."""
    eye = with_batch(identity(factors.shape[-1], factors.dtype), factors.shape[:-2])
    moved = take_along_axis(eye, rows[..., None], axis=-2)
    half = apply(_TRIANGULAR_SOLVE, factors, moved, lower=True, unit=True)
    return apply(_TRIANGULAR_SOLVE, factors, half, lower=False)
