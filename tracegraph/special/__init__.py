"""Special functions, under SciPy's names and with its values, traced or not.

On a GPU they are functions of CUDA's library where it has them. On the host SciPy computes them,
but where its values are wrong. All have derivatives.

>>> import numpy as np
>>> float(tracegraph.jit(lambda x: erf(x) + erfc(x), device="host")(np.float64(0.3)))
1.0

    functions           functions of elements
    compositions        polygamma, beta; logsumexp, softmax
    higher_derivatives  rules for those beyond the first
"""

from tracegraph.special import higher_derivatives as _derivatives  # noqa: F401  (enters its rules)
from tracegraph.special.compositions import beta, log_softmax, logsumexp, polygamma, softmax
from tracegraph.special.functions import (
    betainc,
    betaln,
    digamma,
    ellipe,
    ellipk,
    entr,
    erf,
    erfc,
    erfcinv,
    erfcx,
    erfinv,
    exp1,
    expi,
    expit,
    gamma,
    gammainc,
    gammaincc,
    gammaln,
    i0,
    i0e,
    i1,
    i1e,
    j0,
    j1,
    kl_div,
    log_expit,
    log_ndtr,
    logit,
    ndtr,
    ndtri,
    rel_entr,
    xlog1py,
    xlogy,
    y0,
    y1,
    zeta,
)
from tracegraph.tracing.function_table import SPECIAL

__all__ = [
    "beta",
    "betainc",
    "betaln",
    "digamma",
    "ellipe",
    "ellipk",
    "entr",
    "erf",
    "erfc",
    "erfcinv",
    "erfcx",
    "erfinv",
    "exp1",
    "expi",
    "expit",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "j0",
    "j1",
    "kl_div",
    "log_expit",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "ndtr",
    "ndtri",
    "polygamma",
    "rel_entr",
    "softmax",
    "xlog1py",
    "xlogy",
    "y0",
    "y1",
    "zeta",
]

SPECIAL.update({name: globals()[name] for name in __all__})
