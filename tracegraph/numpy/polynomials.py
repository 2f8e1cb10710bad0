"""Polynomials by their coefficients, that of the highest power first."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.numpy.creation import zeros, zeros_like
from tracegraph.numpy.dispatch import as_array, is_ours, numpy_function
from tracegraph.numpy.joining import concatenate
from tracegraph.numpy.reductions import cumprod
from tracegraph.numpy.shapes import atleast_1d, broadcast_to, reshape
from tracegraph.numpy.sliding import convolve
from tracegraph.numpy.ufuncs import add, divide, multiply, subtract


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
def polyder(p: Any, m: int = 1) -> Any:
    """The m-th derivative of a polynomial.

    Shape: one axis, `m` coefficients less than `p`.
    Dtype: that of `p`; int64 for smaller integers.

    Raises:
        ValueError: `m` is negative.

    >>> tnp.polyder([1.0, 1.0, 1.0, 1.0])
    array([3., 2., 1.])
    """
    if m < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    p = as_array(p)
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
        ValueError: `x` is no vector.

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
    dtype = np.promote_types(x.dtype, int)
    x = as_array(x, dtype)
    ones = np.ones((x.shape[0], min(count, 1)), dtype)
    factors = broadcast_to(reshape(x, (-1, 1)), (x.shape[0], max(count - 1, 0)))
    powers = concatenate([ones, cumprod(factors, 1, dtype)], 1)
    return powers if increasing else powers[:, ::-1]
