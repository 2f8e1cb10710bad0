"""Draft: a Plan under construction, as data.

Planning makes it of a Program. Scheduling, fusion and allocation rewrite it, and lowering turns it
into a Plan. May import `plan/` and the program (`tracegraph/ir`).

    stage           nodes under construction, in blocks: one block for each region
    draft, context  the whole, with the buffers at its border; what is numbered across it
    dependences     true dependences of stages, and hazards of shared memory
    arrangement     where scratch buffers are in the arena
"""
