"""Maps: kernels whose points are independent.

A MapNest with its geometry comes in, and statements in a SourceWriter go out. Contiguous accesses
become vectors; a map that transposes goes through tiles in shared memory.

    maps             one thread for one or several points
    vector_accesses  which accesses are vectors, and their text
    guarded_groups   groups of points that need no guards
    neighbours       elements beside a vector, taken from it
    loads, stores    several vectors of a thread at a time
    transpose_tiles  which maps go through shared memory, and how large tiles are
    tile_accesses    the accesses of a tile: words, misalignment, epilogue, halo
    tiles            the text of a map that does
"""
