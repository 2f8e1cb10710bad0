"""Native code: a Plan as machine code on the CPU, by LLVM.

    Plan ── module ─▶ LLVM IR, as text ── compilation ─▶ object file ── executable ─▶ function

    types, writer        LLVM's types and literals; instructions, blocks, loops
    schedule             the order of loops and the forms of folds, as data
    chunks, parallel, pool        parts of large nests, as functions, for a pool of threads
    nests/               scalar expressions, loops, folds, each kind of nest
    library/             the scalar ops as LLVM IR
    products, blas       matrix products by BLAS
    graphs, signals      nodes, branches and loops of a Plan as blocks of one function
    parts                large plans as several functions
    polls                looks at the clock in long runs
    host_calls           what native code does not have, run by the interpreter
    table, module        the addresses that the code is called with, and its whole text
    compilation/         machine code, made quickly and then well, and kept on disk
    executable, report   the function that calls it; what `explain` and `source` show

A Plan is one function. What has no native form is a call of the host from inside of it.
"""
