"""Native code: a Plan as machine code on the CPU, by LLVM.

    Plan ── module ─▶ LLVM IR, as text ── compiler ─▶ object file ── executable ─▶ function

    types, writer        LLVM's types and literals; instructions, blocks, loops
    ranges, expressions  scalar expressions as instructions, by the ranges of axes
    operations           calls of the library of ops
    schedule             the order of loops and the forms of folds, as data
    points, lanes, folds, nests   loops over points, sums in lanes, folds, and each kind of nest
    products, blas       matrix products by BLAS
    graphs, signals      nodes, branches and loops of a Plan as blocks of one function
    library              the scalar ops as LLVM IR
    supported, host_calls         what native code does not have, run by the interpreter
    table, module        the addresses that the code is called with, and its whole text

A Plan is one function. What has no native form is a call of the host from inside of it.
"""
