"""Rows: reductions, and several passes over each row (softmax, layer norm).

A RowNest with its geometry comes in, and statements in a SourceWriter go out. The threads that
share a row are its lanes; they may be part of a warp, a block, or a cluster of blocks. The order of
every floating-point reduction depends on shapes only, so results are the same at each run.

    split_reductions                one pass; blocks may split the loop of a row (split reduction)
    register_caching                several passes; a row stays in one block or cluster
    lane_loops                      the loop of one lane
    vector_groups                   that loop by vectors
    column_runs                     thread coarsening: several narrow columns for each thread
    flat_passes                     passes over linear indices
    accumulators                    the variables of one accumulator; accumulator_layout has their
                                    sizes
    lane_reduction                  warp and block reduction
    block_partials                  partial results of blocks, published and polled (decoupled
                                    look-back)
    clusters                        kernels for devices with and without thread block clusters
    prefetch                        L2 prefetch of later rows
    row_geometry, cluster_geometry  launch geometry
"""
