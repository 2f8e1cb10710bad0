"""Iterations on a dense matrix: BiCGSTAB, power iteration, Lanczos.

van der Vorst, "Bi-CGSTAB", 1992; Golub and Van Loan, "Matrix Computations", chapters 7 and 10.
"""

from __future__ import annotations

import numpy as np

from benchmarks.harness.agreement import within

from .program import Program

MOST_STEPS = 500


def _shifted(draw, n, dtype):
    """A matrix with eigenvalues in a disc around 3, not symmetric, and a right-hand side."""
    matrix = 3 * np.eye(n) + draw.rng.standard_normal((n, n)) / np.sqrt(n)
    b = draw.rng.standard_normal(n)
    tolerance = 1e-4 if dtype == np.float32 else 1e-9
    return matrix.astype(dtype), b.astype(dtype), float(tolerance**2 * np.sum(b * b))


def _bicgstab(language):
    def solve(a, b, limit):
        def step(state):
            x, r, p, rho, _, count = state
            v = a @ p
            alpha = rho / (b @ v)
            s = r - alpha * v
            t = a @ s
            omega = (t @ s) / (t @ t)
            x = x + alpha * p + omega * s
            r = s - omega * t
            following = b @ r
            p = r + (following / rho) * (alpha / omega) * (p - omega * v)
            return x, r, p, following, r @ r, count + 1

        def unfinished(state):
            return (state[4] > limit) & (state[5] < MOST_STEPS)

        squares = b @ b
        start = b * 0, b, b, squares, squares, 0
        x, *_, count = language.loops.while_loop(unfinished, step, start)
        return x, count

    return solve


def _spectrum(draw, n, dtype):
    """A symmetric matrix whose largest eigenvalue is apart, and a vector."""
    vector = draw.rng.standard_normal(n)
    noise = draw.rng.standard_normal((n, n))
    matrix = (noise + noise.T) / np.sqrt(8 * n) + 1.5 * np.outer(vector, vector) / (vector @ vector)
    return matrix.astype(dtype), draw.uniform(n, dtype, 0.5, 1.5)


def _spectrum_and_tolerance(draw, n, dtype):
    return *_spectrum(draw, n, dtype), 1e-5 if dtype == np.float32 else 1e-11


def _power(language):
    xp = language.xp

    def dominant(a, v, tolerance):
        def step(state):
            v, before, _, count = state
            w = a @ v
            value = v @ w
            change = xp.abs(value - before)
            return w / xp.sqrt(w @ w), value, change, count + 1

        def unfinished(state):
            return (state[2] > tolerance * xp.abs(state[1])) & (state[3] < MOST_STEPS)

        start = v / xp.sqrt(v @ v), language.scalar(0.0, v), language.scalar(1.0, v), 0
        _, value, _, count = language.loops.while_loop(unfinished, step, start)
        return value, count

    return dominant


LANCZOS_STEPS = 24


def _lanczos(language):
    xp = language.xp

    def tridiagonal(a, v):
        def step(j, state):
            basis, diagonal, beside = state
            w = a @ basis[j]
            diagonal = language.set_at(diagonal, j, w @ basis[j])
            for _ in range(2):  # once loses orthogonality to rounding
                w = w - (basis @ w) @ basis
            length = xp.sqrt(w @ w)
            return (
                language.set_at(basis, j + 1, w / length),
                diagonal,
                language.set_at(beside, j, length),
            )

        basis = language.zeros((LANCZOS_STEPS + 1, v.shape[0]), v)
        basis = language.set_at(basis, 0, v / xp.sqrt(v @ v))
        empty = language.zeros((LANCZOS_STEPS,), v)
        state = language.loops.fori_loop(0, LANCZOS_STEPS, step, (basis, empty, empty))
        return state[1], state[2]

    return tridiagonal


PROGRAMS = (
    Program(
        name="bicgstab",
        title="BiCGSTAB, dense matrix, until the residual is small",
        write=_bicgstab,
        inputs=_shifted,
        sizes=(64, 256, 1024),
        agrees=within(2e-3, 1e-7, steps=0.2),
    ),
    Program(
        name="power",
        title="power iteration until the eigenvalue settles",
        write=_power,
        inputs=_spectrum_and_tolerance,
        sizes=(64, 256, 1024),
        agrees=within(1e-3, 1e-8, steps=0.2),
    ),
    Program(
        name="lanczos",
        title=f"Lanczos, {LANCZOS_STEPS} steps, orthogonalised twice",
        write=_lanczos,
        inputs=_spectrum,
        sizes=(64, 256, 1024),
        agrees=within(5e-2, 1e-6),
    ),
)
