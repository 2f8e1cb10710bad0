"""Transforms: functions of functions, as passes over closed regions.

A transform traces a function into a region and records the transformed equations into the trace
around it. May import `control/` and what that imports, and `passes/`, but neither `numpy/` nor
`staging/`.

    batching/             vmap: each equation for all lanes
    derivatives/          jvp, grad and their relatives; functions with rules
    functions_with_rules  functions with rules: their arguments, and the regions of one equation
    transformed_calls     functions over trees -> regions; results
    bodies                regions of loops and branches: with tangents, or taken apart
    body_trace            their traces, which capture nothing
    trace_emitter         records equations of rules
    evaluate              runs a program equation by equation, without compiling it
    tidy                  passes on what transforms read and record
"""

from tracegraph.public_names import set_all as _set_all
from tracegraph.transforms.batching.vmap import *
from tracegraph.transforms.derivatives.checkpoint import *
from tracegraph.transforms.derivatives.custom import *
from tracegraph.transforms.derivatives.forward import *
from tracegraph.transforms.derivatives.implicit import *
from tracegraph.transforms.derivatives.jacobians import *
from tracegraph.transforms.derivatives.linear import *
from tracegraph.transforms.derivatives.reverse import *

_set_all(__name__)
