"""Solvers that search growing spaces: conjugate gradients, and GMRES with Givens rotations.

Hestenes and Stiefel, "Methods of conjugate gradients for solving linear systems", 1952; Saad and
Schultz, "GMRES", 1986.
"""

from __future__ import annotations

import numpy as np

from benchmarks.harness.agreement import within

from .linear_algebra import _shifted as shifted
from .program import Program

MOST_STEPS = 500


def _definite(draw, n, dtype):
    """A positive definite matrix, a right-hand side, and how large the residual may be."""
    noise = draw.rng.standard_normal((n, n))
    b = draw.rng.standard_normal(n)
    tolerance = 1e-4 if dtype == np.float32 else 1e-10
    limit = float(tolerance**2 * np.sum(b * b))
    return (noise @ noise.T / n + np.eye(n)).astype(dtype), b.astype(dtype), limit


def _conjugate_gradients(language):
    def solve(a, b, limit):
        def step(state):
            x, r, p, square, count = state
            along = a @ p
            length = square / (p @ along)
            r = r - length * along
            following = r @ r
            return x + length * p, r, r + (following / square) * p, following, count + 1

        def unfinished(state):
            return (state[3] > limit) & (state[4] < MOST_STEPS)

        x, *_, count = language.loops.while_loop(unfinished, step, (b * 0, b, b, b @ b, 0))
        return x, count

    return solve


SPACE = 6
MOST_RESTARTS = 20


def _gmres(language):
    xp = language.xp

    def rotated(column, cosines, sines, j):
        def rotate(i, column):
            upper = cosines[i] * column[i] + sines[i] * column[i + 1]
            lower = cosines[i] * column[i + 1] - sines[i] * column[i]
            return language.set_at(language.set_at(column, i, upper), i + 1, lower)

        return language.loops.fori_loop(0, j, rotate, column)

    def solve(a, b, limit):
        def grow(j, state):
            basis, triangle, cosines, sines, missed = state
            w = a @ basis[j]
            first = basis @ w
            w = w - first @ basis
            second = basis @ w
            w = w - second @ basis
            length = xp.sqrt(w @ w)
            column = language.set_at(first + second, j + 1, length)
            column = rotated(column, cosines, sines, j)
            size = xp.sqrt(column[j] * column[j] + column[j + 1] * column[j + 1])
            cosine, sine = column[j] / size, column[j + 1] / size
            column = language.set_at(language.set_at(column, j, size), j + 1, 0 * size)
            here = missed[j]
            missed = language.set_at(missed, j + 1, -sine * here)
            return (
                language.set_at(basis, j + 1, w / length),
                language.set_at(triangle, j, column),
                language.set_at(cosines, j, cosine),
                language.set_at(sines, j, sine),
                language.set_at(missed, j, cosine * here),
            )

        def restart(state):
            x, r, square, count = state
            length = xp.sqrt(square)
            basis = language.zeros((SPACE + 1, b.shape[0]), b)
            basis = language.set_at(basis, 0, r / length)
            triangle = language.zeros((SPACE, SPACE + 1), b)
            empty = language.zeros((SPACE,), b)
            missed = language.set_at(language.zeros((SPACE + 1,), b), 0, length)
            state = basis, triangle, empty, empty, missed
            basis, triangle, _, _, missed = language.loops.fori_loop(0, SPACE, grow, state)

            def substitute(i, y):
                at = SPACE - 1 - i
                known = triangle[:, at] @ y
                return language.set_at(y, at, (missed[at] - known) / triangle[at, at])

            y = language.loops.fori_loop(0, SPACE, substitute, empty)
            x = x + y @ basis[:SPACE]
            r = b - a @ x
            return x, r, r @ r, count + 1

        def unfinished(state):
            return (state[2] > limit) & (state[3] < MOST_RESTARTS)

        x, _, _, count = language.loops.while_loop(unfinished, restart, (b * 0, b, b @ b, 0))
        return x, count

    return solve


PROGRAMS = (
    Program(
        name="conjugate",
        title="conjugate gradients, dense matrix, until the residual is small",
        write=_conjugate_gradients,
        inputs=_definite,
        sizes=(64, 256, 1024),
        agrees=within(2e-3, 1e-7, steps=0.2),
    ),
    Program(
        name="gmres",
        title=f"GMRES, restarted after {SPACE} steps, until the residual is small",
        write=_gmres,
        inputs=shifted,
        sizes=(64, 256, 1024),
        agrees=within(2e-3, 1e-7, steps=0.2),
    ),
)
