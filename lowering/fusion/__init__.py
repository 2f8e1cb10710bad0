"""Fusion: nests become one kernel where that saves memory traffic or a node.

In comes a block, and its stages are merged in place; nothing is computed twice that was stored. May
import `draft/` and `plan/`, whose target says when fusing pays.

    fuse               which stages of a block are merged, in which order
    pointwise          maps over one space
    row_passes         maps and reductions over the same rows, as passes of one nest
    access_patterns    strides of the loops of reductions
    dead_stores        stores that nothing reads any more
"""
