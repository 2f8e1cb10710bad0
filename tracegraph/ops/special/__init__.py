"""Special functions, under SciPy's names; importing the package registers all of them.

error_functions   erf and its relatives, the normal distribution
gamma_functions   gamma, its logarithm, digamma, polygamma, betaln
bessel_functions  modified Bessel functions
logarithms        logistic functions, products with logarithms, entropies
records           how these records are made
by_numpy/         the references that are more than one formula
"""

from tracegraph.ops.special import (
    bessel_functions,
    error_functions,
    gamma_functions,
    integrals,
    logarithms,
)

__all__ = ["bessel_functions", "error_functions", "gamma_functions", "integrals", "logarithms"]
