"""Batching: each equation for all lanes.

An op gives its rule in its record, or its form implies it.

vmap                   one function applied to many lanes: arguments, axes, results
batch                  the pass
lanes                  the lanes of a batched region, and the mask of those that are live
flags                  which values differ between lanes
loops, branches        lanes stop one by one; a choice for each lane
calls, custom_kernels  functions that bring rules; kernels of users
effects, callbacks     prints, checks and progress of each lane; calls of Python
"""
