"""What Krylov methods share: operators, limits, and derivatives of solutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tracegraph.numpy as tnp
from tracegraph.numpy.dispatching.dispatch import as_array
from tracegraph.numpy.linalg.matrices import operands
from tracegraph.transforms.derivatives.implicit import custom_linear_solve
from tracegraph.transforms.derivatives.linear import linear_transpose

Operator = Callable[[Any], Any]
SolverMethod = Callable[[Operator, Any, Any, Operator, Any], tuple[Any, Any]]
"""Of an operator, b, the first guess, a preconditioner and the norm to reach: x and info."""


def solution(
    name: str,
    method: SolverMethod,
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
            limit = tnp.maximum(rtol * norm(b), atol)
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


def most_iterations(maxiter: int | None, b: Any) -> int:
    """The limit given, or 10 for each element."""
    return 10 * int(b.size) if maxiter is None else int(maxiter)


def dot(x: Any, y: Any) -> Any:
    """The inner product, linear in y."""
    return tnp.sum(tnp.conj(x) * y)


def norm(x: Any) -> Any:
    """The root of the sum of squares, real."""
    return tnp.sqrt(tnp.sum((x * tnp.conj(x)).real))


def info(is_solved: Any, count: Any) -> Any:
    """0, or else the number of iterations, at least 1."""
    return tnp.where(is_solved, 0, tnp.maximum(count, 1))
