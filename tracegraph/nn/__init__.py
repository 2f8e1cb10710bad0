"""Functions of neural networks, under the names and with the defaults of `jax.nn`.

At a kink, derivatives are those of one side, as there: relu has slope 0 at 0, where
``numpy.maximum(x, 0)`` has ½. No function overflows on the way to a finite value, and the left
tails of gelu, silu and mish keep their relative precision. What is smooth is computed in float32
for float16 and bfloat16.

>>> float(tracegraph.grad(relu)(0.0)), float(tracegraph.grad(softplus)(1000.0))
(0.0, 1.0)

    activations    functions of elements
    over_axes      softmax, log_softmax, glu, standardize; one_hot
"""

from typing import TYPE_CHECKING

from tracegraph.errors.names_elsewhere import names_of as _names_of
from tracegraph.nn.activations import *
from tracegraph.nn.over_axes import *
from tracegraph.public_names import set_all as _set_all

_set_all(__name__)

if not TYPE_CHECKING:  # a type checker would find any name in a module that has this
    __getattr__ = _names_of(__name__)
