"""Nests as loops of LLVM instructions.

ranges, expressions  scalar expressions as instructions, by the ranges of axes
operations           calls of the library of ops
points, columns      loops over points, what is stored at each, and many points at once
lanes, vectors, folds    sums in lanes, of what is read as vectors, and folds in all forms
nest_kinds           each kind of nest, by its schedule
supported            which nests have a native form
"""
