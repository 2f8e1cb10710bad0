"""Native code: a Plan as machine code on the CPU, by LLVM.

    Plan ── graphs, nests ─▶ LLVM IR ── compilation ─▶ object files ── executable ─▶ function

A Plan is one function; what has no native form is a call of the host from inside of it. The section
on native code in docs/extending.md has the flow in detail. From a Plan to text:

    graphs, signals      nodes, branches and loops as blocks of one function; what nests tell
    parts                large plans as several functions
    schedule             the order of loops and the forms of folds, as data
    chunks               which loop or fold threads share, and in which pieces, as data
    parallel             chunks as functions, and the calls of the pool
    nests/               scalar expressions, loops, folds, each kind of nest
    products, blas       matrix products by BLAS, and the addresses of its routines
    polls                looks at the clock in long runs, for Ctrl-C and time limits
    host_calls           what is run by the interpreter, and the function that is called for it
    work                 estimates of work: short plans keep the GIL
    types, writer        LLVM's types and literals; instructions, blocks, loops
    table, module        the addresses that the code is called with; its whole text
    library/             the scalar ops as LLVM IR, and the pool's functions

From text to calls:

    compilation/         machine code, made quickly and then well, and kept on disk
    pool                 the threads of the process that run chunks
    executable           the function that binds arguments and calls the code
    python_source        the text of that function
    report               what `explain` and `source` show, and assembly
"""
