"""Planning: a Program becomes a draft of its Plan, and the finished draft becomes the Plan.

Each region becomes a block of stages: loop nests for the values that are stored, library calls, and
conditionals with a block for each body. May import `draft/`, `plan/` and the program
(`tracegraph/ir`).

    desugar             Program -> Program: the few control forms that a graph has
    materialize         which values are stored, and which are computed where they are used
    region_builder      Region -> Block
    control, effects    branches and loops; prints, checks and progress
    rules               what plans an op without element rules, by name
    matmul, library_operands    matrix products; arrays as libraries take them
    assemble            draft -> Plan
"""
