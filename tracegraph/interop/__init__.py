"""What other libraries must be told about Arrays, until they know it themselves.

array_api_libraries    array-api-compat, array-api-extra, SciPy and scikit-learn
replacing              functions of other libraries, replaced for a while
flat_functions         functions as PyTorch and JAX call and differentiate them
halves                 a vjp in two functions, between which a library keeps values
"""

from tracegraph.interop.array_api_libraries import *
from tracegraph.public_names import set_all as _set_all

_set_all(__name__)
