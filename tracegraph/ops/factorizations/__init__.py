"""Factorizations of the matrices in the last two axes; the axes before them are a batch.

Each matrix is factored by itself: one that has no factorization gives NaN and leaves the others as
they are. The host runs LAPACK, through NumPy or SciPy. A backend without a library call
runs the op's program in `lowering.algorithms` instead.

    cholesky, lu, qr, eigh, svd, pinv   one op each
    triangular_solve                    what makes solutions of the first three
    tridiagonal_solve                   solutions of tridiagonal systems
    by_lapack                           calls of LAPACK and BLAS
    matrices                            types, triangles and samples that they share
"""

from tracegraph.ops.factorizations import (  # noqa: F401  (they register their ops)
    cholesky,
    eigh,
    lu,
    pinv,
    qr,
    svd,
    triangular_solve,
    tridiagonal,
)
