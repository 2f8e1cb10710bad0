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
