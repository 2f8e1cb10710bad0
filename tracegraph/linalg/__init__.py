"""Linear algebra beyond `numpy.linalg`, under the names of SciPy and JAX, traced or not.

The axes before the last two are a batch. All work inside loops and branches and under `vmap`, and
have derivatives. Iterations never enter a derivative: that of a solution solves one more system.

>>> import numpy as np
>>> solve_triangular(np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([2.0, 3.0]), lower=True)
array([1., 2.])

    factored             solve_triangular; Cholesky and LU factors, and solutions by them
    tridiagonal          tridiagonal_solve
    exponential          expm
    conjugate_gradients  cg and bicgstab, and
    minimal_residuals    gmres: A may be a function
    krylov_operators     what these share
    cofactors            derivatives of determinants from the second on
    complete_factors     that of R beside a square Q
"""

from tracegraph.linalg.conjugate_gradients import *
from tracegraph.linalg.exponential import *
from tracegraph.linalg.factored import *
from tracegraph.linalg.minimal_residuals import *
from tracegraph.linalg.tridiagonal import *
from tracegraph.public_names import set_all as _set_all

_set_all(__name__)
