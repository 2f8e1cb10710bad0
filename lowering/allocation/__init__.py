"""Allocation: where every scratch buffer is, in one arena.

A finished draft comes in. Values that may replace each other share a buffer first; then buffers
whose lifetimes do not overlap share bytes. May import `draft/` and `plan/`.

    in_place               carries and updates written over what they replace
    donation               outputs written over donated inputs
    liveness               lifetimes, and which are over when another begins
    assign, free_list      offsets in the arena; its free ranges
"""
