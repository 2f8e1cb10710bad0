"""Covariances and correlations of variables."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tracegraph.ir.types import result_type, type_of
from tracegraph.numpy.axes import transpose
from tracegraph.numpy.contractions import matmul
from tracegraph.numpy.creation import zeros
from tracegraph.numpy.dispatching.dispatch import as_array, is_ours, numpy_function
from tracegraph.numpy.elementwise import clip, complex_, imag, real, where
from tracegraph.numpy.joining import concatenate
from tracegraph.numpy.reductions import sum
from tracegraph.numpy.selecting import diagonal
from tracegraph.numpy.shapes import reshape, squeeze
from tracegraph.numpy.statistics import average
from tracegraph.numpy.ufuncs import conjugate, divide, less_equal, multiply, sqrt, subtract

__all__ = ["corrcoef", "cov"]


@numpy_function
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: DTypeLike | None = None,
) -> Any:
    """Covariances of variables, the rows of `m` and `y`; their columns unless `rowvar`.

    Each observation counts `fweights` times, and with the weight `aweights`. Of traced weights it
    is not checked that they are integers and not negative.

    Shape: (n, n) for n variables; no axes for one.
    Dtype: float64, or complex128 for complex numbers; or `dtype`.

    Raises:
        RuntimeError: weights have another shape than the observations.
        TypeError: `fweights` are no integers.
        ValueError: there are more than two axes; `ddof` is not an integer; weights are negative.

    >>> tnp.cov([[0.0, 2.0], [2.0, 0.0]])
    array([[ 2., -2.],
           [-2.,  2.]])
    """
    if ddof is not None and ddof != int(ddof):
        raise ValueError(f"ddof must be integer, got {ddof!r}")
    m = as_array(m)
    others = [] if y is None else [as_array(y)]
    for name, given in zip(("m", "y"), (m, *others), strict=False):
        if given.ndim > 2:
            raise ValueError(f"{name} has more than 2 dimensions: {given.shape}")
    if dtype is None:
        dtype = result_type(*(type_of(v) for v in (m, *others)), type_of(np.float64(0)))
    x = _rows(as_array(m, dtype))
    if not rowvar and m.ndim != 1:
        x = transpose(x)
    if x.shape[0] == 0:
        return zeros((0, 0))
    for other in others:
        rows = _rows(as_array(other, dtype))
        x = concatenate([x, transpose(rows) if not rowvar and rows.shape[0] != 1 else rows])
    freedom = (0 if bias else 1) if ddof is None else ddof
    weights = _weights(fweights, aweights, x.shape[1])
    center, total = average(x, 1, weights, returned=True)
    x = as_array(subtract(x, reshape(center, (-1, 1))), dtype)
    scaled = x if weights is None else multiply(x, weights)
    products = matmul(x, conjugate(transpose(scaled)))
    scale: Any
    if weights is None:
        scale = 1 / (x.shape[1] - freedom) if x.shape[1] > freedom else np.inf
    else:
        scale = divide(1, _freedom(total[0], freedom, weights, aweights))
    return squeeze(as_array(multiply(products, scale), products.dtype))


def _freedom(total: Any, freedom: int, weights: Any, aweights: Any) -> Any:
    """The degrees of freedom of weighted observations."""
    lost: Any = freedom
    if aweights is not None and freedom:
        squares = sum(multiply(weights, as_array(aweights, np.float64)))
        lost = divide(multiply(freedom, squares), total)
    left = subtract(total, lost) if freedom else total
    return where(less_equal(real(left), 0), as_array(0, left.dtype), left)


def _rows(x: Any) -> Any:
    return reshape(x, (1,) * (2 - x.ndim) + x.shape)


def _weights(fweights: Any, aweights: Any, count: int) -> Any:
    """The product of both weights, or None."""
    product = None
    for name, factor in (("fweights", fweights), ("aweights", aweights)):
        if factor is None:
            continue
        weights = as_array(factor, np.float64)
        if name == "fweights" and not is_ours((factor,)) and (weights != np.around(weights)).any():
            raise TypeError("fweights must be integer")
        if weights.ndim > 1:
            raise RuntimeError(f"cannot handle multidimensional {name}")
        if weights.shape != (count,):
            raise RuntimeError(f"incompatible numbers of samples and {name}")
        if not is_ours((factor,)) and (weights < 0).any():
            raise ValueError(f"{name} cannot be negative")
        product = weights if product is None else multiply(product, weights)
    return product


@numpy_function
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: DTypeLike | None = None) -> Any:
    """Correlation coefficients of variables, the rows of `x` and `y`; columns unless `rowvar`.

    Shape: (n, n) for n variables; no axes for one.
    Dtype: float64, or complex128 for complex numbers; or `dtype`.

    Raises:
        ValueError: there are more than two axes.

    >>> tnp.corrcoef([[0.0, 2.0, 4.0], [2.0, 1.0, 0.0]])
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return divide(c, c)
    deviation = sqrt(real(diagonal(c)))
    c = divide(divide(c, reshape(deviation, (-1, 1))), deviation)
    if c.dtype.kind == "c":
        return complex_(clip(real(c), -1, 1), clip(imag(c), -1, 1))
    return clip(c, -1, 1)
