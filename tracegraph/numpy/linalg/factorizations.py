"""Cholesky and QR factorizations."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.arrays.eager import apply
from tracegraph.errors import UnsupportedByTracerError
from tracegraph.ir.op import get
from tracegraph.numpy.creation import zeros
from tracegraph.numpy.dispatching.attached import with_derivative
from tracegraph.numpy.dispatching.dispatch import numpy_function
from tracegraph.numpy.joining import concatenate
from tracegraph.numpy.linalg.matrices import adjoint, matrices, require_success, square

__all__ = ["cholesky", "qr"]

_CHOLESKY, _QR = get("cholesky"), get("qr")

QRResult: Any = type(np.linalg.qr(np.eye(1)))
"""NumPy's class, which it does not export."""


@numpy_function
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """The lower triangular L of a = L Lᴴ, from the lower triangle of `a`; or U of a = Uᴴ U.

    A matrix that is not positive definite gives NaN if it is traced.

    Shape: that of `a`.
    Dtype: that of `a`; float64 for integers.

    Raises:
        LinAlgError: the matrices are not square; or one is not positive definite, and nothing is
            traced.
        TypeError: LAPACK has no such dtype, as for float16.

    >>> tnp.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]])
    array([[2., 0.],
           [1., 2.]])
    """
    a = square(a)
    found = apply(_CHOLESKY, adjoint(a) if upper else a)
    found = require_success(found, a, "Matrix is not positive definite")
    return adjoint(found) if upper else found


@numpy_function
def qr(a: Any, mode: str = "reduced") -> Any:
    """Q with orthonormal columns and upper triangular R of a = Q R, by Householder reflections.

    Modes: "reduced"; "complete", with square Q; "r", R alone.

    Derivatives are those of matrices of full rank, in a matrix with more columns than rows of its
    first square; of others they are not finite. The further columns of a square Q are determined up
    to a rotation. They have the derivative that does not turn them among themselves: what does not
    depend on their choice, as their projection, has its own.

    Shape: (…, m, k) and (…, k, n) of (…, m, n), k being the least of m and n, or m if complete.
    Dtype: that of `a`; float64 for integers.

    Raises:
        LinAlgError: there are fewer than two axes.
        TypeError: LAPACK has no such dtype, as for float16.
        UnsupportedByTracerError: mode "raw".
        ValueError: another mode.

    >>> tnp.linalg.qr([[3.0, 1.0], [4.0, 2.0]]).R.round(3)
    array([[-5. , -2.2],
           [ 0. ,  0.4]])
    """
    if mode == "raw":
        raise UnsupportedByTracerError(
            'numpy.linalg.qr with mode="raw"',
            "LAPACK's reflectors are not kept; write q, r = numpy.linalg.qr(a), and q.T @ b for "
            "what they are applied to",
        )
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"Unrecognized mode '{mode}'")
    a = matrices(a)
    m, n = a.shape[-2:]
    if mode == "complete" and m > n:
        rest = zeros((*a.shape[:-1], m - n), a.dtype)  # columns that are reflected no further
        q, r = apply(_QR, concatenate([a, rest], axis=-1))
        q = with_derivative(q, "complete_q", a)
        return QRResult(q, with_derivative(r[..., :n], "complete_r", a))
    q, r = apply(_QR, a)
    return r if mode == "r" else QRResult(q, r)
