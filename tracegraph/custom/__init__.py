"""Kernels and functions that users write in CUDA C++, each with a NumPy reference.

    declared_kernel       a kernel of its own in the graph
    declared_elementwise  functions of elements, which are fused
    reduction             reductions and scans, into which what they fold is fused
    options               their options `batching` and `derivative`
    folds                 the NumPy side of reductions
    texts                 their expressions, in namespaces
    capture               the work of other libraries
    embed                 graphs of others

May import `control`, `numpy`, `arrays`, `tracing`, `ops`, `ir`, and what is below them.
"""

from tracegraph.custom.capture import *
from tracegraph.custom.declared_elementwise import *
from tracegraph.custom.declared_kernel import *
from tracegraph.custom.embed import *
from tracegraph.custom.reduction import *
from tracegraph.public_names import set_all as _set_all

_set_all(__name__)
