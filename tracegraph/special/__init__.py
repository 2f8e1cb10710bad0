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

from typing import TYPE_CHECKING

from tracegraph.errors.names_elsewhere import names_of as _names_of
from tracegraph.public_names import set_all as _set_all
from tracegraph.special.compositions import *
from tracegraph.special.functions import *
from tracegraph.tracing.function_table import SPECIAL as _SPECIAL

_SPECIAL.update({name: globals()[name] for name in _set_all(__name__)})

if not TYPE_CHECKING:  # a type checker would find any name in a module that has this
    __getattr__ = _names_of(__name__)
