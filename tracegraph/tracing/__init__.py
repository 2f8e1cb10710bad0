"""Tracing: a Python function called with tracers becomes a Program.

A tracer stands for an array and behaves as one; what is computed with it is recorded as equations.
Functions of arrays come in, programs and closed regions go out. May import `ir/`, `errors/` and
`user_source`. NumPy's functions are built on tracers: they reach them through `function_table`.

    trace                          recording of equations, captures and constants
    tracer, operators, updates     the traced array: local mutation, operators, `x.at[i].set(v)`
    views                          aliasing by NumPy's rules: writes through views
    selection                      index expressions parsed against a shape
    foreign, parameters            arrays of other libraries; parameters of functions
    function_table                 late binding of what is built on tracers
"""
