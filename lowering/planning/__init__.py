"""Planning: a Program becomes a draft of its Plan, and the finished draft becomes the Plan.

Each region becomes a block of nodes: loop nests for materialized values, library calls, and
conditionals with a block for each body. The edges of the Plan are those of the draft's dependences.
May import `draft/`, `plan/` and the program (`tracegraph/ir`).

    expansion/          Program -> Program, before regions become blocks
    materialize         which values get memory, and which are inlined
    use_analysis        the kernels that would evaluate each value
    gather_costs        when to store before a gather
    region_builder      Region -> Block
    elements            one element of a value, as a scalar expression
    control, effects    branches and loops; prints, checks and progress
    barriers, events    what is before a C function or an event is computed before it
    updates             scatters, as maps where no two points meet
    rules               by name, what plans an op that is not made of scalar expressions
    matmul, fourier     matrix products and Fourier transforms as library calls
    library_operands    arrays as libraries take them
    sorting             nodes that sort
    factorizations      library calls, or algorithms in their place
    libraries/          collectives, and which library calls and products run side by side
    memory_bound        nodes that are bound by memory run one after the other
    assemble            draft -> Plan
"""
