"""Transforms: functions of functions, as passes over closed regions.

A transform traces a function into a region and records the transformed equations into the trace
around it. May import `control/` and what that imports, and `passes/`, but neither `numpy/` nor
`staging/`.

    vmap                   one function applied to many lanes: arguments, axes, results
    batch                  the pass: each equation for all lanes
    lanes                  the lanes of a batched region, and the mask of those that are live
    batched_flags          which values differ between lanes
    batched_loops          while_loop and scan; lanes stop one by one
    batched_branches       cond and switch; a choice for each lane
    batched_effects        prints, checks and progress of each lane
"""
