"""Pseudo-inverses, least squares and ranks, by singular values."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.numpy.contractions import matmul
from tracegraph.numpy.creation import zeros
from tracegraph.numpy.dispatching.dispatch import as_array, numpy_function
from tracegraph.numpy.elementwise import astype
from tracegraph.numpy.linalg.matrices import from_lower, matrices, operands, square
from tracegraph.numpy.linalg.spectra import svd
from tracegraph.numpy.reductions import count_nonzero, sum_of_squares
from tracegraph.numpy.shapes import broadcast_to
from tracegraph.numpy.ufuncs import greater, not_equal
from tracegraph.ops.factorizations.matrices import real_dtype
from tracegraph.tracing.tracer import Tracer

__all__ = ["lstsq", "matrix_rank", "pinv"]

_PINV, _SVD = get("pinv"), get("svd")

_NOT_GIVEN: Any = object()


@numpy_function
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = _NOT_GIVEN) -> Any:
    """The pseudo-inverses of matrices (Moore and Penrose).

    Singular values count as zero up to `rcond` of the largest, 1e-15 by default; or up to `rtol`,
    which is the dtype's spacing at 1 times the larger extent if it is None. A matrix that is not
    finite gives NaN. The derivative is that at a constant rank.

    Shape: that of `a` with its last two axes exchanged.
    Dtype: that of `a`; float64 for integers.

    Raises:
        LinAlgError: there are fewer than two axes; or `hermitian` matrices are not square.
        TypeError: LAPACK has no such dtype, as for float16.
        ValueError: `rcond` and `rtol` are both given.

    >>> tnp.linalg.pinv([[2.0, 0.0], [0.0, 0.0]])
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    a = from_lower(square(a)) if hermitian else matrices(a)
    if rcond is not None and rtol is not _NOT_GIVEN:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    if rcond is None:
        rcond = 1e-15 if rtol is _NOT_GIVEN else rtol
    return _pinv(a, _spacing(a) if rcond is None else rcond)


def _pinv(a: Any, rtol: Any) -> Any:
    rtol = astype(as_array(rtol), real_dtype(a.dtype))
    return apply(_PINV, a, broadcast_to(rtol[..., None, None], (*a.shape[:-2], 1, 1)))


def _spacing(a: Any) -> float:
    return float(max(a.shape[-2:], default=1) * np.finfo(a.dtype).eps)


@numpy_function
def matrix_rank(
    A: Any,  # noqa: N803  (NumPy's name)
    tol: Any = None,
    hermitian: bool = False,
    *,
    rtol: Any = None,
) -> Any:
    """How many singular values are above `tol`, or above `rtol` of the largest.

    `rtol` is by default the dtype's spacing at 1 times the larger extent. For `hermitian` matrices,
    eigenvalues of the lower triangle are used.

    Shape: that of `A` without its last two axes. A vector has rank 1 unless it is zero.
    Dtype: int64.

    Raises:
        LinAlgError: `hermitian` matrices are not square.
        TypeError: LAPACK has no such dtype, as for float16.
        ValueError: `tol` and `rtol` are both given.

    >>> tnp.linalg.matrix_rank(np.ones((3, 2)))
    np.int64(1)
    """
    if rtol is not None and tol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    if np.ndim(A) < 2:
        return astype(not_equal(as_array(A), 0).any(), np.int64)
    a = square(A) if hermitian else matrices(A)
    values = svd(a, compute_uv=False, hermitian=hermitian)
    if 0 in values.shape:
        return zeros(values.shape[:-1], np.int64)
    if tol is None:
        rtol = as_array(_spacing(a) if rtol is None else rtol)
        tol = values.max(axis=-1, keepdims=True) * astype(rtol, values.dtype)[..., None]
    else:
        tol = as_array(tol)[..., None]
    return count_nonzero(greater(values, tol), axis=-1)


@numpy_function
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """The shortest x with the least |b - a @ x|, then residuals, rank and singular values.

    Singular values count as zero up to `rcond` of the largest: by default the dtype's spacing at 1
    times the larger extent, and if it is -1, the spacing. x is the pseudo-inverse times `b`,
    refined once. Residuals are sums of squares, for each column of `b`. NumPy leaves them out if
    `a` has a lesser rank than columns; they are here if anything is traced, as the rank is data.

    Shape: (n,) or (n, k) of (m, n) and (m,) or (m, k); (1,) or (k,), but (0,) where m <= n; ();
    and the least of m and n.
    Dtype: the common one of both, float64 for integers; real for residuals and singular values;
    int32 for the rank.

    Raises:
        LinAlgError: `a` is not a matrix, or rows do not fit.
        TypeError: LAPACK has no such dtype, as for float16.

    >>> tnp.linalg.lstsq([[1.0], [1.0]], [1.0, 3.0])[0]
    array([2.])
    """
    a, b = operands(a, b)
    if a.ndim != 2 or b.ndim not in (1, 2):
        raise np.linalg.LinAlgError(f"lstsq: {a.shape} is no matrix, or {b.shape} no columns")
    if a.shape[0] != b.shape[0]:
        raise np.linalg.LinAlgError(f"Incompatible dimensions: {a.shape} and {b.shape}")
    (m, n), dtype = a.shape, real_dtype(a.dtype)
    right = b[:, None] if b.ndim == 1 else b
    spacing = float(np.finfo(dtype).eps)
    cutoff = spacing * max(m, n) if rcond is None else rcond
    if isinstance(cutoff, (int, float)) and cutoff < 0:
        cutoff = spacing
    inverse = _pinv(a, cutoff)
    x = matmul(inverse, right)
    x = x + matmul(inverse, right - matmul(a, x))
    values = apply(_SVD, a, vectors=False)
    largest = values[:1] if min(m, n) else zeros(1, dtype)
    limit = largest * astype(as_array(cutoff), dtype)
    rank = astype(count_nonzero(greater(values, limit)), np.int32)
    is_short = not isinstance(rank, Tracer) and int(rank) < n
    has_residuals = m > n and not is_short
    residuals = sum_of_squares(right - matmul(a, x), 0, False) if has_residuals else zeros(0, dtype)
    return x[:, 0] if b.ndim == 1 else x, residuals, rank, values
