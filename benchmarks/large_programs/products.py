"""Products that share a matrix: a batch of rows with one right factor, and both sides of one."""

from __future__ import annotations

from benchmarks.harness.agreement import close

from .at_sizes import at_sizes


def _rows(draw, n, dtype):
    """An array of n by n + 15 rows, and a matrix."""
    wide = 128 if n > 50 else 32
    rows = draw.rng.standard_normal((n, n + 15, wide)).astype(dtype)
    return rows, draw.rng.standard_normal((wide, wide)).astype(dtype)


def shared_factor(language, functions, steps):
    """Each row is a matrix of its own to the product."""

    def run(rows, matrix):
        n, m, wide = rows.shape
        return (rows.reshape(n, m, 1, wide) @ matrix).reshape(n, m, wide)

    return run


def _matrix(draw, n, dtype):
    """A square matrix and two vectors."""
    return draw.uniform((n, n), dtype), draw.uniform(n, dtype), draw.uniform(n, dtype)


def both_sides(language, functions, steps):
    """A matrix times a vector, and another vector times the matrix."""

    def run(matrix, x, y):
        return matrix @ x, y @ matrix

    return run


PROGRAMS = (
    *at_sizes(
        "shared_factor",
        "n by n + 15 rows times one matrix",
        shared_factor,
        _rows,
        small=(20, 1),
        large=(110, 1),
        agrees=close,
        numpy=True,
    ),
    *at_sizes(
        "both_sides",
        "a matrix with a vector at its right, and one at its left",
        both_sides,
        _matrix,
        small=(300, 1),
        large=(11_000, 1),
        agrees=close,
        numpy=True,
    ),
)
