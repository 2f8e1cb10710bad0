"""Fusion: nests become one kernel where that saves memory traffic or a node.

The finished block of a region comes in, and its nodes are fused in place. A value is forwarded in
a register, and is not computed again. May import `draft/` and `plan/`, whose target says when
fusion pays.

    fuse                 which nests of a block become one kernel
    pointwise            maps and reductions over one space
    row_passes           maps and reductions over the same rows, as passes of one nest
    row_profitability    when row passes are faster than separate kernels
    access_patterns      which accesses of reductions are coalesced
    dead_stores          stores that nothing reads any more
"""
