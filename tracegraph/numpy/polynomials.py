"""Polynomials by their coefficients, that of the highest power first."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.errors import UnsupportedByTracerError
from tracegraph.ir.types import ArrayType, result_type, type_of
from tracegraph.numpy.contractions import matmul
from tracegraph.numpy.creation import zeros, zeros_like
from tracegraph.numpy.dispatching.dispatch import as_array, is_ours, laid_out, numpy_function
from tracegraph.numpy.elementwise import astype
from tracegraph.numpy.joining import concatenate
from tracegraph.numpy.linalg.least_squares import lstsq
from tracegraph.numpy.linalg.systems import inv
from tracegraph.numpy.reductions import cumprod
from tracegraph.numpy.reductions import sum as summed
from tracegraph.numpy.shapes import atleast_1d, broadcast_to, reshape
from tracegraph.numpy.sliding import convolve
from tracegraph.numpy.ufuncs import add, divide, multiply, sqrt, subtract

__all__ = [
    "poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub", "polyval",
    "vander",
]  # fmt: skip


@numpy_function
def polyval(p: Any, x: Any) -> Any:
    """The values of a polynomial at `x`, by Horner's rule.

    Shape: that of `x`.
    Dtype: the common one of `p` and `x`.

    Raises:
        TypeError: `p` has no axis.

    >>> tnp.polyval([3.0, 0.0, 1.0], np.array([1.0, 5.0]))
    array([ 4., 76.])
    """
    p, x = as_array(p), as_array(x)
    y = zeros_like(x)
    for k in range(len(p)):
        y = add(multiply(y, x), p[k])
    return y


@numpy_function
def polyadd(a1: Any, a2: Any) -> Any:
    """The sum of two polynomials.

    Shape: the longer of both.
    Dtype: the common one of both.

    Raises:
        ValueError: the shapes do not fit.

    >>> tnp.polyadd([1.0, 2.0], [9.0, 5.0, 4.0])
    array([9., 6., 6.])
    """
    return add(*_padded(a1, a2))


@numpy_function
def polysub(a1: Any, a2: Any) -> Any:
    """The difference of two polynomials.

    Shape: the longer of both.
    Dtype: the common one of both.

    Raises:
        ValueError: the shapes do not fit.

    >>> tnp.polysub([1.0, 2.0], [9.0, 5.0, 4.0])
    array([-9., -4., -2.])
    """
    return subtract(*_padded(a1, a2))


def _padded(a1: Any, a2: Any) -> tuple[Any, Any]:
    """Both with as many coefficients, by zeros in front."""
    a1, a2 = atleast_1d(as_array(a1), as_array(a2))
    more = len(a2) - len(a1)
    if more > 0:
        a1 = concatenate([zeros(more, a1.dtype), a1])
    elif more < 0:
        a2 = concatenate([zeros(-more, a2.dtype), a2])
    return a1, a2


@numpy_function
def polymul(a1: Any, a2: Any) -> Any:
    """The product of two polynomials. NumPy drops leading zeros; of a traced one they stay.

    Shape: one axis; the sum of the lengths less 1.
    Dtype: the common one of both.

    Raises:
        ValueError: one has more than one axis, or no coefficients.

    >>> tnp.polymul([1.0, 2.0], [9.0, 5.0, 1.0])
    array([ 9., 23., 11.,  2.])
    """
    return convolve(_trimmed(a1), _trimmed(a2))


def _trimmed(p: Any) -> Any:
    if is_ours((p,)):
        return atleast_1d(as_array(p))
    return np.poly1d(p).coeffs


@numpy_function
def polydiv(u: Any, v: Any) -> tuple[Any, Any]:
    """The quotient and the remainder of two polynomials.

    NumPy drops leading zeros of the remainder; of a traced one they stay, and it has as many
    coefficients as `v` less 1, but at least 1.

    Shape: one axis each.
    Dtype: the common floating-point one of both, or complex.

    Raises:
        ValueError: one has more than one axis, or no coefficients.

    >>> tnp.polydiv([2.0, 5.0, 4.0], [1.0, 1.0])
    (array([2., 3.]), array([1.]))
    """
    if not is_ours((u, v)):
        return np.polydiv(u, v)
    u, v = (add(atleast_1d(as_array(p)), 0.0) for p in (u, v))
    if not (u.ndim == v.ndim == 1 and u.size and v.size):
        raise ValueError(f"polydiv takes vectors of coefficients, got shapes {u.shape}, {v.shape}")
    rest = add(u, zeros_like(v[:1]))
    scale, count = divide(1.0, v[0]), len(v)
    quotient = [zeros(1, rest.dtype)] if len(u) < count else []
    for _ in range(len(u) - count + 1):
        factor = multiply(scale, rest[0])
        quotient.append(atleast_1d(factor))
        lower = subtract(rest[1:count], multiply(factor, v[1:]))
        rest = concatenate([lower, rest[count:]])
    return concatenate(quotient), rest if len(rest) else zeros(1, rest.dtype)


@numpy_function
def polyder(p: Any, m: int = 1) -> Any:
    """The m-th derivative of a polynomial.

    Shape: one axis, `m` coefficients less than `p`.
    Dtype: that of `p`; int64 for smaller integers.

    Raises:
        ValueError: `m` is negative.
        TypeError: `p` is a number.

    >>> tnp.polyder([1.0, 1.0, 1.0, 1.0])
    array([3., 2., 1.])
    """
    m = int(m)
    if m < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    p = as_array(p)
    if p.ndim == 0:
        raise TypeError("polyder takes the coefficients along an axis, and got a number")
    for _ in range(m):
        p = multiply(p[:-1], np.arange(len(p) - 1, 0, -1))
    return p


@numpy_function
def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """The m-th antiderivative of a polynomial, with constants of integration `k`, zeros by default.

    Shape: one axis, `m` coefficients more than `p`.
    Dtype: floating point or complex.

    Raises:
        ValueError: `m` is negative, or there are fewer constants, but more than one.

    >>> tnp.polyint([6.0, 4.0], k=3.0)
    array([3., 4., 3.])
    """
    m = int(m)
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    constants = atleast_1d(np.zeros(m) if k is None else as_array(k))
    if len(constants) == 1 and m > 1:
        constants = broadcast_to(multiply(constants, 1.0), (m,))
    if len(constants) < m:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    p = as_array(p)
    for order in range(m):
        p = concatenate([divide(p, np.arange(len(p), 0, -1)), constants[order : order + 1]])
    return p


@numpy_function
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:  # noqa: N803  (NumPy's)
    """Powers of a vector as columns, from the highest to 0 unless `increasing`.

    Shape: (len(x), N), by default square.
    Dtype: that of `x`; int64 for smaller integers.

    Raises:
        ValueError: `x` is not a vector.

    >>> tnp.vander([1, 2, 3])
    array([[1, 1, 1],
           [4, 2, 1],
           [9, 3, 1]])
    """
    x = as_array(x)
    if x.ndim != 1:
        raise ValueError(f"x must be a one-dimensional array or sequence, got shape {x.shape}")
    count = x.shape[0] if N is None else N
    if count < 0:
        raise ValueError("negative dimensions are not allowed")
    dtype = result_type(type_of(x), ArrayType(np.dtype(np.int64)))
    x = as_array(x, dtype)
    ones = np.ones((x.shape[0], min(count, 1)), dtype)
    factors = broadcast_to(reshape(x, (-1, 1)), (x.shape[0], max(count - 1, 0)))
    powers = concatenate([ones, cumprod(factors, 1, dtype)], 1)
    return powers if increasing else laid_out(powers[:, ::-1], None)


@numpy_function
def poly(seq_of_zeros: Any) -> Any:
    """The coefficients of the polynomial with these roots, 1 in front.

    NumPy drops imaginary parts if the roots are conjugate; of traced ones the parts stay, and
    vanish but for rounding. Matrices, whose eigenvalues NumPy takes, must not be traced.

    Shape: one axis, 1 more than the roots.
    Dtype: float32, complex64 or complex128 as the roots are, else float64.

    Raises:
        UnsupportedByTracerError: a matrix.

    >>> tnp.poly([1.0, -1.0])
    array([ 1.,  0., -1.])
    """
    if not is_ours((seq_of_zeros,)):
        return np.poly(seq_of_zeros)
    roots = atleast_1d(as_array(seq_of_zeros))
    if roots.ndim != 1:
        raise UnsupportedByTracerError(
            f"numpy.poly of a traced array of shape {roots.shape}",
            "it takes the eigenvalues of a matrix; pass a vector of roots",
        )
    dtype = roots.dtype if roots.dtype.char in "fFD" else np.dtype(np.float64)
    roots, one = astype(roots, dtype), np.ones(1, dtype)
    found: Any = one
    for k in range(len(roots)):
        lower = multiply(found, roots[k])
        found = subtract(
            concatenate([found, zeros(1, dtype)]), concatenate([zeros(1, dtype), lower])
        )
    return found


@numpy_function
def polyfit(
    x: Any,
    y: Any,
    deg: int,
    rcond: Any = None,
    full: bool = False,
    w: Any = None,
    cov: Any = False,
) -> Any:
    """The coefficients of the polynomial of degree `deg` with the least squares of errors at `x`.

    The method is NumPy's: least squares of powers of `x`, each scaled to the length 1. NumPy warns
    if they are dependent to the precision `rcond`; here there is no warning.

    Args:
        x: a vector of places.
        y: the values there, a vector, or a matrix with a column for each polynomial.
        deg: the degree, static.
        rcond: singular values count as zero up to this part of the largest; by default the spacing
            of the dtype at 1 times the number of places.
        full: whether residuals, rank, singular values and `rcond` are also returned.
        w: factors of the errors at each place.
        cov: whether the covariance of the coefficients is also returned; "unscaled": not scaled by
            the residuals.

    Shape: (deg + 1,) or (deg + 1, k).
    Dtype: the common floating-point one of `x` and `y`.

    Raises:
        TypeError: `x` is not a vector or empty, or `y` or `w` have other shapes.
        ValueError: `deg` is negative, or there are too few places to scale the covariance.

    >>> tnp.polyfit([0.0, 1.0, 2.0], [1.0, 3.0, 5.0], 1).round(6)
    array([2., 1.])
    """
    order = int(deg) + 1
    x, y = add(as_array(x), 0.0), add(as_array(y), 0.0)
    if deg < 0:
        raise ValueError("expected deg >= 0")
    if x.ndim != 1:
        raise TypeError("expected 1D vector for x")
    if x.size == 0:
        raise TypeError("expected non-empty vector for x")
    if not 1 <= y.ndim <= 2:
        raise TypeError("expected 1D or 2D array for y")
    if x.shape[0] != y.shape[0]:
        raise TypeError("expected x and y to have same length")
    if rcond is None:
        rcond = x.shape[0] * np.finfo(x.dtype).eps
    left, right = vander(x, order), y
    if w is not None:
        w = add(as_array(w), 0.0)
        if w.ndim != 1:
            raise TypeError("expected a 1-d array for weights")
        if w.shape[0] != y.shape[0]:
            raise TypeError("expected w and y to have the same length")
        left = multiply(left, w[:, None])
        right = multiply(right, w if right.ndim == 1 else w[:, None])
    scale = sqrt(summed(multiply(left, left), axis=0))
    left = divide(left, scale)
    solution, residuals, rank, values = lstsq(left, right, rcond)
    solution = divide(solution.T, scale).T
    if full:
        return solution, residuals, rank, values, rcond
    if not cov:
        return solution
    base = divide(inv(matmul(left.T, left)), multiply(scale[:, None], scale))
    if isinstance(cov, str) and cov == "unscaled":
        factor: Any = 1
    elif x.shape[0] <= order:
        raise ValueError(
            "the number of data points must exceed order to scale the covariance matrix"
        )
    else:
        factor = divide(residuals, x.shape[0] - order)
    if y.ndim == 1:
        return solution, multiply(base, factor)
    return solution, multiply(base[:, :, None], factor)
