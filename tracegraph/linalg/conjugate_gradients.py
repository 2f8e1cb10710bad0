"""Conjugate gradients for A x = b, where A is a matrix, or a function that multiplies by it.

Each is a `while_loop` around vectors. A derivative of a solution solves one more system by the same
method: with the operator for tangents, with its transpose for cotangents.
"""

from __future__ import annotations

from typing import Any

import tracegraph.numpy as tnp
from tracegraph.control import while_loop
from tracegraph.linalg.krylov_operators import Operator, dot, info, most_iterations, norm, solution

__all__ = ["bicgstab", "cg"]


def cg(
    A: Any,  # noqa: N803  (SciPy's names)
    b: Any,
    x0: Any = None,
    *,
    rtol: Any = 1e-5,
    atol: Any = 0.0,
    maxiter: int | None = None,
    M: Any = None,  # noqa: N803
) -> tuple[Any, Any]:
    """The x of A x = b for a Hermitian positive definite A, by conjugate gradients.

    (Hestenes and Stiefel, Methods of conjugate gradients for solving linear systems, 1952.)

    Args:
        A: a matrix, or a linear function of arrays like `b`.
        b: the right-hand side: an array of any shape for a function, of shape (n,) for a matrix.
        x0: the first guess, by default zeros. It has no derivative.
        rtol: iterations end where the residual's norm is at most this times that of `b`,
        atol: or at most this.
        maxiter: the most iterations, by default 10 for each element of `b`.
        M: a preconditioner, which approximates the inverse of A: a Hermitian positive definite
            matrix or function.

    Returns:
        x, of the shape and dtype of `b`, and an integer: 0, or if the residual is larger in the
        end, the number of iterations.

    Raises:
        TypeError: LAPACK has no such dtype, as for float16.
        ValueError: a matrix does not fit `b`.

    >>> x, info = tracegraph.linalg.cg(lambda x: 2 * x, np.array([2.0, 4.0]))
    >>> x, int(info)
    (array([1., 2.]), 0)
    """

    def method(apply_a: Operator, b: Any, x: Any, apply_m: Operator, limit: Any) -> Any:
        most = most_iterations(maxiter, b)
        r = b - apply_a(x)
        z = apply_m(r)

        def is_far(carry: Any) -> Any:
            k, _, r, *_ = carry
            return (norm(r) > limit) & (k < most)

        def step(carry: Any) -> Any:
            k, x, r, p, old = carry
            q = apply_a(p)
            alpha = old / dot(p, q)
            x, r = x + alpha * p, r - alpha * q
            z = apply_m(r)
            new = dot(r, z)
            return k + 1, x, r, z + (new / old) * p, new

        k, x, r, *_ = while_loop(is_far, step, (0, x, r, z, dot(r, z)))
        return x, info(norm(r) <= limit, k)

    return solution("cg", method, A, b, x0, rtol, atol, M, hermitian=True)


def bicgstab(
    A: Any,  # noqa: N803  (SciPy's names)
    b: Any,
    x0: Any = None,
    *,
    rtol: Any = 1e-5,
    atol: Any = 0.0,
    maxiter: int | None = None,
    M: Any = None,  # noqa: N803
) -> tuple[Any, Any]:
    """The x of A x = b for any A, by stabilized biconjugate gradients.

    (Van der Vorst, Bi-CGSTAB: a fast and smoothly converging variant of Bi-CG, 1992.) An iteration
    multiplies by A twice.

    Args:
        A: a matrix, or a linear function of arrays like `b`.
        b: the right-hand side: an array of any shape for a function, of shape (n,) for a matrix.
        x0: the first guess, by default zeros. It has no derivative.
        rtol: iterations end where the residual's norm is at most this times that of `b`,
        atol: or at most this.
        maxiter: the most iterations, by default 10 for each element of `b`.
        M: a preconditioner, which approximates the inverse of A: a matrix or a linear function.

    Returns:
        x, of the shape and dtype of `b`, and an integer: 0, or if the residual is larger in the
        end, the number of iterations, negative if the method broke down before the last.

    Raises:
        TypeError: LAPACK has no such dtype, as for float16.
        ValueError: a matrix does not fit `b`.

    >>> a = np.array([[2.0, 1.0], [0.0, 4.0]])
    >>> x, info = tracegraph.linalg.bicgstab(a, np.array([3.0, 4.0]), rtol=1e-12)
    >>> x.round(6), int(info)
    (array([1., 1.]), 0)
    """

    def method(apply_a: Operator, b: Any, x: Any, apply_m: Operator, limit: Any) -> Any:
        most = most_iterations(maxiter, b)
        shadow = b - apply_a(x)

        def is_far(carry: Any) -> Any:
            k, _, r, _, rho = carry
            return (norm(r) > limit) & (k < most) & (rho != 0)

        def step(carry: Any) -> Any:
            k, x, r, p, rho = carry
            moved = apply_m(p)
            v = apply_a(moved)
            alpha = rho / dot(shadow, v)
            s = r - alpha * v
            smoothed = apply_m(s)
            t = apply_a(smoothed)
            square = dot(t, t)
            omega = dot(t, s) / tnp.where(square == 0, 1, square)
            r = s - omega * t
            new = dot(shadow, r)
            is_stuck = omega == 0  # without a step along s there is no next direction
            beta = (new / rho) * (alpha / tnp.where(is_stuck, 1, omega))
            p = r + beta * (p - omega * v)
            x = x + alpha * moved + omega * smoothed
            return k + 1, x, r, p, tnp.where(is_stuck, 0, new).astype(b.dtype)

        start = (0, x, shadow, shadow, dot(shadow, shadow))
        k, x, r, *_ = while_loop(is_far, step, start)
        return x, tnp.where(k < most, -1, 1) * info(norm(r) <= limit, k)

    return solution("bicgstab", method, A, b, x0, rtol, atol, M)
