"""The exponential of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

import tracegraph.numpy as tnp
from tracegraph.arrays.eager import apply
from tracegraph.control import fori_loop
from tracegraph.ir.op import get
from tracegraph.numpy.linalg.matrices import square
from tracegraph.numpy.linalg.systems import solve_factored

__all__ = ["expm"]

_COEFFICIENTS = (
    *(64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0),
    *(129060195264000.0, 10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0),
    *(40840800.0, 960960.0, 16380.0, 182.0, 1.0),
)
"""Of the numerator of the Padé approximant of degree 13."""

_RADIUS = 5.371920351148152
"""The norm up to which the approximant is exact to the last place of float64."""


def expm(A: Any, *, max_squarings: int = 16) -> Any:  # noqa: N803  (SciPy's name)
    """The exponentials of square matrices, by scaling and squaring of a Padé approximant.

    The approximant has degree 13 (Higham, The scaling and squaring method for the matrix
    exponential revisited, 2005), for all norms and dtypes. A matrix whose norm is so large that it
    needs more than `max_squarings` squarings gives NaN: with 16, one of 1-norm 3.5e5.

    Shape: that of `A`.
    Dtype: that of `A`; float64 for integers.

    Raises:
        LinAlgError: matrices are not square.
        TypeError: LAPACK has no such dtype, as for float16.

    >>> tracegraph.linalg.expm([[0.0, 1.0], [0.0, 0.0]])
    array([[1., 1.],
           [0., 1.]])
    """
    a = square(A)
    if 0 in a.shape:
        return a
    norm = tnp.max(tnp.sum(tnp.abs(a), axis=-2, keepdims=True), axis=-1, keepdims=True)
    _, power = tnp.frexp(norm / _RADIUS)  # norm / radius < 2**power
    count = tnp.clip(power, 0, max_squarings).astype(np.int64)
    scaled = a * tnp.exp2(-count.astype(norm.dtype))
    found = _approximant(scaled)

    def step(i: Any, x: Any) -> Any:
        return tnp.where(i < count, x @ x, x)

    found = fori_loop(np.int64(0), tnp.max(count), step, found, max_steps=max_squarings)
    is_done = (power <= max_squarings) & tnp.isfinite(norm)
    return tnp.where(is_done, found, tnp.nan).astype(a.dtype)


def _approximant(a: Any) -> Any:
    # of the zero matrix, the systems are the identity: its exponential is exact
    c = [a.real.dtype.type(x / _COEFFICIENTS[0]) for x in _COEFFICIENTS]
    eye = tnp.eye(a.shape[-1], dtype=a.dtype)
    a2 = a @ a
    a4 = a2 @ a2
    a6 = a4 @ a2
    odd = a6 @ (c[13] * a6 + c[11] * a4 + c[9] * a2)
    odd = a @ (odd + c[7] * a6 + c[5] * a4 + c[3] * a2 + c[1] * eye)
    even = a6 @ (c[12] * a6 + c[10] * a4 + c[8] * a2)
    even = even + c[6] * a6 + c[4] * a4 + c[2] * a2 + c[0] * eye
    factors, _, rows = apply(get("lu"), even - odd)
    return solve_factored(factors, rows, even + odd)
