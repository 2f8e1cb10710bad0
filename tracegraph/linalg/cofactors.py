"""Derivatives of cofactors, which are second derivatives of determinants and all above.

They are those of a polynomial: `numpy/determinants.py` has the first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tracegraph.numpy as tnp
from tracegraph.arrays.eager import apply
from tracegraph.control import cond
from tracegraph.ir.op import get
from tracegraph.numpy.dispatching.attached import derivative_rule, with_derivative
from tracegraph.numpy.linalg.determinants import inverse_of, small_pivots
from tracegraph.numpy.linalg.matrices import with_batch
from tracegraph.transforms.derivatives.forward import jvp, stop_gradient
from tracegraph.transforms.derivatives.reverse import vjp

_TRIANGULAR_SOLVE = get("triangular_solve")

_DEFICIENCY = 6
"""Derivatives of orders above this are zero where the rank is lower by more than this: the one
limit of the polynomial below, which has a product of matrices for each."""


@derivative_rule("inverse")
def _of_inverse(value: Any, a: Any, *, tangents: Any) -> Any:
    """-A⁻¹ A' A⁻¹, at regular matrices."""
    inverse = with_derivative(value, "inverse", a)
    return -tnp.matmul(tnp.matmul(inverse, tangents[0]), inverse)


@derivative_rule("cofactors")
def _of_cofactors(
    cofactors: Any,
    a: Any,
    value: Any,
    factors: Any,
    rows: Any,
    parity: Any,
    *,
    tangents: Any,
) -> Any:
    """That of det(A) A⁻ᵀ for matrices that are all regular; or else that of the polynomial."""
    pivots = tnp.diagonal(factors, 0, -2, -1)
    _, _, is_small = small_pivots(pivots, np.finfo(factors.dtype).eps ** (1 / 3))

    def regular(a: Any, t: Any) -> Any:
        determinant = with_derivative(value, "det", a, factors, rows, parity)
        inverse = with_derivative(inverse_of(factors, rows), "inverse", a)
        along = tnp.matmul(inverse, t)
        trace = tnp.sum(tnp.diagonal(along, 0, -2, -1), axis=-1)[..., None, None]
        found = determinant[..., None, None] * (trace * inverse - tnp.matmul(along, inverse))
        return tnp.matrix_transpose(found)

    def singular(a: Any, t: Any) -> Any:
        def cofactors_of(a: Any) -> Any:
            return _cofactors_of_polynomial(a, factors, rows, parity)

        return jvp(cofactors_of, (a,), (t,))[1]

    return cond(tnp.any(is_small), singular, regular, a, tangents[0])


def _cofactors_of_polynomial(a: Any, factors: Any, rows: Any, parity: Any) -> Any:
    """The gradients of determinants by `_polynomial`."""
    found, pullback = vjp(lambda a: _polynomial(a, factors, rows, parity), a)
    return pullback(found * 0 + found.dtype.type(1))[0]


def _polynomial(a: Any, factors: Any, rows: Any, parity: Any) -> Any:
    """The determinants near matrices P⁻¹ L U as polynomials of their elements.

    L⁻¹ P A is triangular at the point, with the pivots on its diagonal. M is this with `scale`
    added to the small pivots, whose columns are E: it is regular, and

        det(L⁻¹ P A) = det(M - scale E Eᵀ) = det(M) det(1 - scale Eᵀ M⁻¹ E).

    The last matrix has as many rows as there are small pivots, and its determinant is a polynomial
    of it by its powers alone (Faddeev and LeVerrier; Gantmacher, The Theory of Matrices, IV.5).
    """
    factors, n = stop_gradient(factors), a.shape[-1]
    pivots = tnp.diagonal(factors, 0, -2, -1)
    _, scale, is_small = small_pivots(pivots, np.finfo(factors.dtype).eps ** (1 / 3))
    eye = tnp.identity(n, factors.dtype)
    added = tnp.where(is_small, scale, 0).astype(factors.dtype)
    moved = tnp.take_along_axis(a, rows[..., None], axis=-2)
    upper = apply(_TRIANGULAR_SOLVE, factors, moved, lower=True, unit=True)
    regular = upper + added[..., None, :] * eye
    at_point = tnp.triu(factors) + added[..., None, :] * eye
    inverse = apply(_TRIANGULAR_SOLVE, at_point, with_batch(eye, a.shape[:-2]), lower=False)
    inverse = with_derivative(inverse, "inverse", regular)
    of_regular = tnp.prod(tnp.diagonal(at_point, 0, -2, -1), axis=-1)
    of_regular = with_derivative(of_regular, "det_by_inverse", regular, inverse)
    is_inner = is_small[..., :, None] & is_small[..., None, :]
    rest = tnp.where(is_inner, eye - scale[..., None].astype(factors.dtype) * inverse, 0)
    rest = rest.astype(factors.dtype)
    count = tnp.sum(is_small, axis=-1)
    found = tnp.where(tnp.equal(count, 0), factors.dtype.type(1), 0).astype(factors.dtype)
    power = with_batch(eye, a.shape[:-2])
    for k in range(1, min(n, _DEFICIENCY) + 1):
        times = tnp.matmul(rest, power)
        coefficient = tnp.sum(tnp.diagonal(times, 0, -2, -1), axis=-1) / k
        found = tnp.where(tnp.equal(count, k), coefficient, found)
        power = coefficient[..., None, None] * eye - times
    return parity * of_regular * found


@derivative_rule("det_by_inverse")
def _of_det_by_inverse(value: Any, a: Any, inverse: Any, *, tangents: Any) -> Any:
    """det(A) times the trace of A⁻¹ A'."""
    determinant = with_derivative(value, "det_by_inverse", a, inverse)
    return determinant * tnp.sum(tnp.matrix_transpose(inverse) * tangents[0], axis=(-2, -1))
