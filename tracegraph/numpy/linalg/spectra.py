"""Eigenvalues of Hermitian matrices, and singular values."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.numpy.creation import zeros
from tracegraph.numpy.dispatching.dispatch import numpy_function
from tracegraph.numpy.elementwise import where
from tracegraph.numpy.generated import identity
from tracegraph.numpy.joining import concatenate
from tracegraph.numpy.linalg.matrices import adjoint, columns_at, descending, matrices, square
from tracegraph.numpy.selecting import take_along_axis
from tracegraph.numpy.shapes import broadcast_to
from tracegraph.numpy.ufuncs import absolute, less

__all__ = ["eigh", "eigvalsh", "svd", "svdvals"]

_EIGH, _SVD, _QR, _FORBID = map(get, ("eigh", "svd", "qr", "forbid_derivative"))

EighResult: Any = type(np.linalg.eigh(np.eye(1)))
SVDResult: Any = type(np.linalg.svd(np.eye(1)))
"""NumPy's classes, which it does not export."""

_WHY = "U and Vh are completed by columns that are no function of a: pass full_matrices=False"


@numpy_function
def eigh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803  (NumPy's name)
    """The eigenvalues of Hermitian matrices, ascending, and eigenvectors as columns.

    Their names are `eigenvalues` and `eigenvectors`.

    One triangle of `a` is read: the lower one, or with UPLO="U" the upper one. A matrix that is not
    finite gives NaN. Vectors are determined up to a factor of size 1, which depends on the device;
    derivatives of what does not depend on that choice are also right at equal eigenvalues, to about
    half of the digits; those of such vectors themselves are large.

    A GPU runs Jacobi sweeps of n / 2 rotations at a time (Golub and Van Loan, Matrix Computations,
    4th ed., 8.5), the host LAPACK.

    Shape: that of `a` without its last axis, and that of `a`.
    Dtype: that of `a`, float64 for integers; of eigenvalues real.

    Raises:
        LinAlgError: the matrices are not square.
        TypeError: LAPACK has no such dtype, as for float16.
        ValueError: `UPLO` is neither "L" nor "U".

    >>> tnp.linalg.eigh([[0.0, 2.0], [2.0, 0.0]]).eigenvalues
    array([-2.,  2.])
    """
    return EighResult(*apply(_EIGH, _lower(a, UPLO), vectors=True))


@numpy_function
def eigvalsh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803  (NumPy's name)
    """The eigenvalues of Hermitian matrices in ascending order, from one triangle as `eigh` has it.

    Shape: that of `a` without its last axis.
    Dtype: that of `a`, real; float64 for integers.

    Raises:
        LinAlgError: the matrices are not square.
        TypeError: LAPACK has no such dtype, as for float16.
        ValueError: `UPLO` is neither "L" nor "U".

    >>> tnp.linalg.eigvalsh([[0.0, 2.0], [2.0, 0.0]])
    array([-2.,  2.])
    """
    return apply(_EIGH, _lower(a, UPLO), vectors=False)


def _lower(a: Any, triangle: str) -> Any:
    if triangle.upper() not in ("L", "U"):
        raise ValueError(f"UPLO argument must be 'L' or 'U', got {triangle!r}")
    a = square(a)
    return adjoint(a) if triangle.upper() == "U" else a


@numpy_function
def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """The singular values of matrices, descending, between unitary matrices: a = U S Vh.

    U and Vh are square, or with `full_matrices=False` as narrow as `a` is; `compute_uv=False` gives
    S alone. For `hermitian` matrices, eigenvalues of the lower triangle are used. A matrix that is
    not finite gives NaN. Vectors are determined up to a factor of size 1, which depends on the
    device; derivatives of what does not depend on that choice are also right at equal singular
    values, to about half of the digits, and those of `full` matrices are refused.

    A GPU factors `a` by Householder reflections, and orthogonalizes by one-sided Jacobi sweeps
    (Drmač and Veselić, New fast and accurate Jacobi SVD algorithm I, 2008); the host runs LAPACK.

    Shape: (…, m, m), (…, k) and (…, n, n) of (…, m, n), k being the least of m and n; or (…, m, k)
    and (…, k, n) around (…, k).
    Dtype: that of `a`, float64 for integers; of singular values real.

    Raises:
        LinAlgError: there are fewer than two axes; or `hermitian` matrices are not square.
        TypeError: LAPACK has no such dtype, as for float16.

    >>> tnp.linalg.svd([[0.0, 2.0], [1.0, 0.0]]).S
    array([2., 1.])
    """
    if hermitian:
        return _of_hermitian(square(a), compute_uv)
    a = matrices(a)
    if not compute_uv:
        return apply(_SVD, a, vectors=False)
    u, s, vh = apply(_SVD, a, vectors=True)
    if full_matrices:
        u, vh = _completed(u), adjoint(_completed(adjoint(vh)))
    return SVDResult(u, s, vh)


def _of_hermitian(a: Any, vectors: bool) -> Any:
    if not vectors:
        size = absolute(apply(_EIGH, a, vectors=False))
        return take_along_axis(size, descending(size), axis=-1)
    values, basis = apply(_EIGH, a, vectors=True)
    size = absolute(values)
    order = descending(size)
    signed = where(less(values, 0)[..., None, :], -basis, basis)
    vh = adjoint(columns_at(signed, order))
    return SVDResult(columns_at(basis, order), take_along_axis(size, order, axis=-1), vh)


def _completed(u: Any) -> Any:
    """Orthonormal columns continued by others, until there are as many as rows."""
    *batch, m, k = u.shape
    if m == k:
        return u
    if k == 0:
        return broadcast_to(identity(m, u.dtype), (*batch, m, m))
    u = apply(_FORBID, u, why=_WHY)
    rest = zeros((*batch, m, m - k), u.dtype)  # columns that are reflected no further
    q, _ = apply(_QR, concatenate([u, rest], axis=-1))
    return concatenate([u, q[..., k:]], axis=-1)


@numpy_function
def svdvals(x: Any, /) -> Any:
    """The singular values of matrices in descending order.

    Shape: that of `x` without its last two axes, then the least of these.
    Dtype: that of `x`, real; float64 for integers.

    Raises:
        LinAlgError: there are fewer than two axes.
        TypeError: LAPACK has no such dtype, as for float16.

    >>> tnp.linalg.svdvals([[0.0, 2.0], [1.0, 0.0]])
    array([2., 1.])
    """
    return apply(_SVD, matrices(x), vectors=False)
