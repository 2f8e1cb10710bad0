"""Special functions, under SciPy's names; importing the package registers all of them.

error_functions   erf and its relatives, the normal distribution
gamma_functions   gamma, its logarithm, digamma, polygamma, betaln, zeta
incomplete        the incomplete gamma and beta functions
elliptic          complete elliptic integrals
bessel_functions  modified Bessel functions
logarithms        logistic functions, products with logarithms, entropies
records           how these records are made
by_scipy          the references: SciPy's functions
…_values          those that mend SciPy's where they are wrong
"""

from tracegraph.ops.special import (  # noqa: F401  (they register their ops)
    bessel_functions,
    elliptic,
    error_functions,
    gamma_functions,
    incomplete,
    integrals,
    logarithms,
)
