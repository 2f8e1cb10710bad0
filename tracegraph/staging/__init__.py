"""Staging: a call is traced, planned and compiled once for its types, then launched.

Functions come in; `Traced`, `Lowered` and `Compiled` are the stages, and go out to users who ask.
May import all of tracegraph but what is built on it (`memory`, `streams`, `debug`, `testing`). Only
`compiler` imports `lowering`.

    jit, jitted                   the decorator; functions that are compiled for types of arguments
    calls/                        arguments of calls, their keys, and results
    builds, retraces              executables by types, and statistics; what keeps changing
    stages                        the three stages
    executable_cache              executables, evicted when memory is short
    memory_budget, scratch        how much executables may hold, and how long
    compiled_programs, fallbacks  reports of what was compiled; warnings of what fell back
    device_features, graph_view   what a device can do, and the graph behind calls, as records
    exported                      graphs for others to launch
    interfaces, compiler          what a compiler and a backend are; the plug for `lowering`
    gc_pause                      planning without garbage collection
"""
