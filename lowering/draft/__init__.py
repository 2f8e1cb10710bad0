"""Draft: a Plan under construction, as data.

Planning builds it from a Program. Scheduling, fusion and allocation rewrite it, and planning turns
it into a Plan. May import `plan/` and the program (`tracegraph/ir`).

    draft           the whole, with the buffers at its border
    context         what is numbered across it
    draft_nodes     nodes under construction, in blocks: one block for each region
    dependences     dependences of nodes, and hazards of shared memory
    arena_layout    offsets of scratch buffers
"""
