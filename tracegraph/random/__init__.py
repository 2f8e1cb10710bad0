"""Random numbers with keys, as in `jax.random`: the same keys give the same numbers.

A key is an array of two uint32. Functions that draw numbers are pure: the same key gives the same
numbers, on every device, in loops and in traced functions. New keys are made by `split` and
`fold_in`.

>>> first, second = split(key(0))
>>> uniform(first, (2,)).shape
(2,)

    keys, per_device      key, split, fold_in; keys of each device of a mesh
    uniform               bits; uniform numbers, integers, booleans
    transformed_uniforms  distributions that are functions of uniform numbers
    truncated             normal numbers between two bounds
    drawing               permutations; elements of an array
    gamma                 distributions by rejection
    counts                Poisson, binomial and geometric numbers
    vectors               normal vectors of a covariance, points of a ball, orthogonal matrices
"""

from typing import TYPE_CHECKING

from tracegraph.errors.names_elsewhere import names_of as _names_of
from tracegraph.public_names import set_all as _set_all
from tracegraph.random.counts import *
from tracegraph.random.drawing import *
from tracegraph.random.gamma import *
from tracegraph.random.keys import *
from tracegraph.random.per_device import *
from tracegraph.random.transformed_uniforms import *
from tracegraph.random.truncated import *
from tracegraph.random.uniform import *
from tracegraph.random.vectors import *

_set_all(__name__)

if not TYPE_CHECKING:  # a type checker would find any name in a module that has this
    __getattr__ = _names_of(__name__)
