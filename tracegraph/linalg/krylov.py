"""Krylov methods for A x = b, where A is a matrix, or a function that multiplies by it.

Each is a `while_loop` around vectors. A derivative of a solution solves one more system by the same
method: with the operator for tangents, with its transpose for cotangents.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tracegraph.numpy as tnp
from tracegraph.arrays.eager import apply
from tracegraph.control import fori_loop, while_loop
from tracegraph.ir.op import get
from tracegraph.numpy.dispatch import as_array
from tracegraph.numpy.matrices import operands
from tracegraph.transforms.implicit import custom_linear_solve
from tracegraph.transforms.linear import linear_transpose

Operator = Callable[[Any], Any]
Method = Callable[[Operator, Any, Any, Operator, Any], tuple[Any, Any]]
"""Of an operator, b, the first guess, a preconditioner and the norm to reach: x and info."""


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
        most = _most(maxiter, b)
        r = b - apply_a(x)
        z = apply_m(r)

        def is_far(carry: Any) -> Any:
            k, _, r, *_ = carry
            return (_norm(r) > limit) & (k < most)

        def step(carry: Any) -> Any:
            k, x, r, p, old = carry
            q = apply_a(p)
            alpha = old / _dot(p, q)
            x, r = x + alpha * p, r - alpha * q
            z = apply_m(r)
            new = _dot(r, z)
            return k + 1, x, r, z + (new / old) * p, new

        k, x, r, *_ = while_loop(is_far, step, (0, x, r, z, _dot(r, z)))
        return x, _info(_norm(r) <= limit, k)

    return _solution("cg", method, A, b, x0, rtol, atol, M, hermitian=True)


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
        most = _most(maxiter, b)
        shadow = b - apply_a(x)

        def is_far(carry: Any) -> Any:
            k, _, r, _, rho = carry
            return (_norm(r) > limit) & (k < most) & (rho != 0)

        def step(carry: Any) -> Any:
            k, x, r, p, rho = carry
            moved = apply_m(p)
            v = apply_a(moved)
            alpha = rho / _dot(shadow, v)
            s = r - alpha * v
            smoothed = apply_m(s)
            t = apply_a(smoothed)
            square = _dot(t, t)
            omega = _dot(t, s) / tnp.where(square == 0, 1, square)
            r = s - omega * t
            new = _dot(shadow, r)
            is_stuck = omega == 0  # without a step along s there is no next direction
            beta = (new / rho) * (alpha / tnp.where(is_stuck, 1, omega))
            p = r + beta * (p - omega * v)
            x = x + alpha * moved + omega * smoothed
            return k + 1, x, r, p, tnp.where(is_stuck, 0, new).astype(b.dtype)

        start = (0, x, shadow, shadow, _dot(shadow, shadow))
        k, x, r, *_ = while_loop(is_far, step, start)
        return x, tnp.where(k < most, -1, 1) * _info(_norm(r) <= limit, k)

    return _solution("bicgstab", method, A, b, x0, rtol, atol, M)


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
        most = _most(maxiter, b)
        size = max(1, min(restart, b.size))

        def is_far(carry: Any) -> Any:
            k, _, r = carry
            return (_norm(r) > limit) & (k < most)

        def step(carry: Any) -> Any:
            k, x, r = carry
            x = x + apply_m(_cycle(lambda y: apply_a(apply_m(y)), r, size))
            return k + 1, x, b - apply_a(x)

        k, x, r = while_loop(is_far, step, (0, x, b - apply_a(x)))
        return x, _info(_norm(r) <= limit, k)

    return _solution("gmres", method, A, b, x0, rtol, atol, M)


def _cycle(operator: Operator, r: Any, size: int) -> Any:
    """The combination y of a Krylov basis with the least norm of r - A y."""
    length = _norm(r)
    row, column = tnp.arange(size + 1)[:, None], tnp.arange(size)
    basis = tnp.where(row == 0, (r / length).reshape(-1), 0).astype(r.dtype)

    def step(j: Any, carry: Any) -> Any:
        basis, hessenberg = carry
        v = operator(basis[j].reshape(r.shape)).reshape(-1)
        before = _norm(v)
        first = tnp.conj(basis) @ v
        v = v - first @ basis
        second = tnp.conj(basis) @ v  # once more, for what rounding left
        v = v - second @ basis
        norm = _norm(v)
        is_new = norm > np.finfo(norm.dtype).eps * before  # else the space is invariant
        v = tnp.where(is_new, v / tnp.where(is_new, norm, 1), 0).astype(r.dtype)
        below = tnp.where(is_new, norm, 0).astype(r.dtype)
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


def _solution(
    name: str,
    method: Method,
    operator: Any,
    b: Any,
    x0: Any,
    rtol: Any,
    atol: Any,
    preconditioner: Any,
    hermitian: bool = False,
) -> tuple[Any, Any]:
    """The solution by a method, with the derivatives of a solution."""
    (b,) = operands(b)
    if not callable(operator):
        operator, b = operands(operator, b)
    apply_a = _operator(name, operator, b)
    apply_m = _identity if preconditioner is None else _operator(name, preconditioner, b)
    guess = tnp.zeros(b.shape, b.dtype) if x0 is None else as_array(x0, b.dtype)

    def solver(apply_m: Operator, guess: Any) -> Any:
        def solve(apply_a: Operator, b: Any) -> Any:
            limit = tnp.maximum(rtol * _norm(b), atol)
            return method(apply_a, b, guess, apply_m, limit)

        return solve

    def transposed(x: Any) -> Any:
        if hermitian:
            return tnp.conj(apply_m(tnp.conj(x)))
        return linear_transpose(apply_m, b)(x)[0]

    back = transposed if preconditioner is not None else apply_m
    transpose_solve = solver(back, tnp.zeros(b.shape, b.dtype))
    found: tuple[Any, Any] = custom_linear_solve(
        apply_a, b, solver(apply_m, guess), transpose_solve, has_aux=True
    )
    return found


def _identity(x: Any) -> Any:
    return x


def _operator(name: str, a: Any, b: Any) -> Operator:
    """A function that multiplies by a matrix, or a function that keeps the type of `b`."""
    if callable(a):
        return lambda x: as_array(a(x), b.dtype)
    matrix = as_array(a)
    if b.ndim != 1 or matrix.shape != (b.size, b.size):
        raise ValueError(f"{name}: {matrix.shape} and {b.shape} do not fit: (n, n) and (n,) do")
    return lambda x: as_array(matrix @ x, b.dtype)


def _most(maxiter: int | None, b: Any) -> int:
    return 10 * int(b.size) if maxiter is None else int(maxiter)


def _dot(x: Any, y: Any) -> Any:
    return tnp.sum(tnp.conj(x) * y)


def _norm(x: Any) -> Any:
    return tnp.sqrt(tnp.sum((x * tnp.conj(x)).real))


def _info(is_solved: Any, count: Any) -> Any:
    """0, or else the number of iterations, at least 1."""
    return tnp.where(is_solved, 0, tnp.maximum(count, 1))
