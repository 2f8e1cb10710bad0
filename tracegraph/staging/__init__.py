"""Staging: a call is traced, planned and compiled once for its types, then launched.

Functions come in; `Traced`, `Lowered` and `Compiled` are the stages, and go out to users who ask.
May import all of tracegraph but what is built on it (`memory`, `streams`, `debug`, `testing`). Only
`compiler` imports `lowering`.

    jit, jitted                    the decorator; functions that are compiled for types of arguments
    builds, call_tracing           their executables by types, and statistics; tracing of a call
    signature, argument_layout     keys of calls; how leaves are nested
    stages, results                the three stages; results as Arrays in a tree
    fast_call, executable_cache    repeated calls; executables, evicted when memory is short
    memory_budget, scratch         how much executables may hold, and how long
    programs, fallbacks            reports of what was compiled; warnings of what fell back
    device_features                what a device can do, as a record
    donated, exported              donated arguments; graphs for others to launch
    interfaces, compiler           what a compiler and a backend are; the plug for `lowering`
    gc_pause                       planning without garbage collection
"""
