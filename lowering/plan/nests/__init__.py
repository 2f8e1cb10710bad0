"""Nests: what a kernel computes, as loops over scalar expressions. No node, no device.

No file here knows a node, a device, or a program.

kernel             the nests, and what they store, fold and signal
buffer             memory that a Plan names
analysis           expressions, reads and writes of a nest, computed once
rewriting          nests with expressions substituted and buffers renamed
access_patterns    which accesses are contiguous
boxes              where a guard holds, as limits of each axis
static_places      the elements that accesses reach, at all points together
lazy_values        what is worth to be computed only where a choice takes it
guarded_indices    indices under a guard, which may be simpler
lane_nests         points that never meet, so that a thread may run those of one lane
row_blocks         how many blocks share a row
weight             what estimates of time are made from
strides, rounding  arithmetic of layouts and sizes
kernel_text        nests for people
"""
