"""NumPy-style functions as functions of JAX's arrays: `tracegraph.jax.wrap`.

It imports JAX, which tracegraph by itself does not.

    wrapping    `wrap`: trees of arrays and numbers in, arrays out
    callback    a flat function as a function of JAX, with its derivatives and batches
"""

from tracegraph.jax.wrapping import *
from tracegraph.public_names import set_all as _set_all

_set_all(__name__)
