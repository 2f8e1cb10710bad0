"""Nests as loops of LLVM instructions.

Expressions and points:

    ranges, expressions  scalar expressions as instructions, by the ranges of axes
    operations           calls of the library of ops
    loops                loops over points: plain, in tiles, in blocks that are checked
    points               what is stored at each point, and chunks as functions
    columns              loops over many points at once, innermost

Folds:

    folds, extremes      accumulators at one point and their steps; comparisons for positions
    fold_blocks          which loop of a fold is divided into blocks, and loops over these
    lanes, vectors       sums in lanes; values at consecutive steps as vectors
    block_folds          folds block by block, with kept_values that passes over a row share
    searches             positions of extremes, by blocks
    fold_columns         folds at many points at once
    chunked_folds        folds whose blocks threads share

Nests:

    nest_kinds           each kind of nest, by its schedule
    supported            which nests have a native form
"""
