"""Generalized minimal residuals."""

from __future__ import annotations

from typing import Any

import numpy as np

import tracegraph.numpy as tnp
from tracegraph.arrays.eager import apply
from tracegraph.control import fori_loop, while_loop
from tracegraph.ir.op import get
from tracegraph.linalg.krylov_operators import Operator, info, most_iterations, norm, solution

__all__ = ["gmres"]


def gmres(
    A: Any,  # noqa: N803  (SciPy's names)
    b: Any,
    x0: Any = None,
    *,
    rtol: Any = 1e-5,
    atol: Any = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,  # noqa: N803
) -> tuple[Any, Any]:
    """The x of A x = b for any A, by generalized minimal residuals, with restarts.

    (Saad and Schultz, GMRES: a generalized minimal residual algorithm, 1986.) A cycle makes an
    orthonormal basis of `restart` vectors, orthogonalized twice, and minimizes the residual in it
    by a QR factorization. The preconditioner is applied from the right: residuals are those of
    A x = b.

    Args:
        A: a matrix, or a linear function of arrays like `b`.
        b: the right-hand side: an array of any shape for a function, of shape (n,) for a matrix.
        x0: the first guess, by default zeros. It has no derivative.
        rtol: cycles end where the residual's norm is at most this times that of `b`,
        atol: or at most this.
        restart: vectors in a cycle; at most the number of elements of `b`.
        maxiter: the most cycles, by default 10 for each element of `b`.
        M: a preconditioner, which approximates the inverse of A: a matrix or a linear function.

    Returns:
        x, of the shape and dtype of `b`, and an integer: 0, or if the residual is larger in the
        end, the number of cycles.

    Raises:
        TypeError: LAPACK has no such dtype, as for float16.
        ValueError: a matrix does not fit `b`.

    >>> a = np.array([[2.0, 1.0], [0.0, 4.0]])
    >>> x, info = tracegraph.linalg.gmres(a, np.array([3.0, 4.0]), rtol=1e-12)
    >>> x.round(6), int(info)
    (array([1., 1.]), 0)
    """

    def method(apply_a: Operator, b: Any, x: Any, apply_m: Operator, limit: Any) -> Any:
        most = most_iterations(maxiter, b)
        size = max(1, min(restart, b.size))

        def is_far(carry: Any) -> Any:
            k, _, r = carry
            return (norm(r) > limit) & (k < most)

        def step(carry: Any) -> Any:
            k, x, r = carry
            x = x + apply_m(_cycle(lambda y: apply_a(apply_m(y)), r, size))
            return k + 1, x, b - apply_a(x)

        k, x, r = while_loop(is_far, step, (0, x, b - apply_a(x)))
        return x, info(norm(r) <= limit, k)

    return solution("gmres", method, A, b, x0, rtol, atol, M)


def _cycle(operator: Operator, r: Any, size: int) -> Any:
    """The combination y of a Krylov basis with the least norm of r - A y."""
    length = norm(r)
    row, column = tnp.arange(size + 1)[:, None], tnp.arange(size)
    basis = tnp.where(row == 0, (r / length).reshape(-1), 0).astype(r.dtype)

    def step(j: Any, carry: Any) -> Any:
        basis, hessenberg = carry
        v = operator(basis[j].reshape(r.shape)).reshape(-1)
        before = norm(v)
        first = tnp.conj(basis) @ v
        v = v - first @ basis
        second = tnp.conj(basis) @ v  # once more, for what rounding left
        v = v - second @ basis
        rest = norm(v)
        is_new = rest > np.finfo(rest.dtype).eps * before  # else the space is invariant
        v = tnp.where(is_new, v / tnp.where(is_new, rest, 1), 0).astype(r.dtype)
        below = tnp.where(is_new, rest, 0).astype(r.dtype)
        found = tnp.where(row == j + 1, below, (first + second)[:, None])
        hessenberg = tnp.where(column == j, found, hessenberg)
        return tnp.where(row == j + 1, v, basis), hessenberg

    hessenberg = tnp.zeros((size + 1, size), r.dtype)
    basis, hessenberg = fori_loop(0, size, step, (basis, hessenberg))
    q, upper = apply(get("qr"), hessenberg)
    right = tnp.conj(q[0]) * length
    pivots = tnp.abs(tnp.diagonal(upper))
    is_used = pivots > np.finfo(pivots.dtype).eps * tnp.max(pivots)
    eye = tnp.eye(size, dtype=r.dtype)
    upper = tnp.where(is_used, upper, eye)  # columns beyond an invariant space count for nothing
    right = tnp.where(is_used, right, 0).astype(r.dtype)
    weights = apply(get("triangular_solve"), upper, right[:, None], lower=False)[:, 0]
    return (weights @ basis[:size]).reshape(r.shape)
