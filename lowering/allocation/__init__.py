"""Allocation: where every scratch buffer is, in one arena.

A finished draft comes in. Values that may overwrite each other share a buffer first; then buffers
whose lifetimes are disjoint share bytes. Out come fewer buffers, and the layout of the arena. May
import `draft/` and `plan/`.

    in_place           carries and updated arrays written over what they replace; copy elimination
    donation           outputs written over donated inputs
    buffer_sharing     when one buffer may take the memory of another; sets of those that do
    liveness           lifetimes, and which buffers are dead when another one becomes live
    assign             offsets in the arena, first fit
    free_ranges        free ranges of the arena
"""
