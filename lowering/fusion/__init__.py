"""Fusion: nests become one kernel where that saves memory traffic or a node.

The finished block of a region comes in, and its nodes are fused in place. A value is forwarded in
a register; what other kernels would load is computed again where that takes less time. May import
`draft/` and `plan/`, whose target says when fusion pays.

    fuse                 which nests of a block become one kernel
    pointwise            maps and reductions over one space
    row_passes           maps and reductions over the same rows, as passes of one nest
    row_profitability    when row passes are faster than separate kernels
    access_patterns      which accesses of reductions are coalesced
    recomputation        what is computed again where it is used, and not stored
    recomputed_values    values that nests store, as expressions
    row_values           what they take from the folds of a row
    short_folds          folds of few elements as expressions
    nest_times           how long both forms take
    dead_stores          stores that nothing reads any more
"""
