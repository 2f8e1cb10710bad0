"""The host backend: a plan as one Python function of NumPy calls on the CPU.

A Plan comes in, and a `HostExecutable` goes out, with the same arena offsets, in-place choices and
conditions as on a device. The files here are the plain interpreter: one way to evaluate each nest,
with each value in a temporary of its own. `tuning` only makes the calls cheaper, and joins through
`passes.py` alone; `TRACEGRAPH_HOST=plain` leaves it out. May import `lowering.plan`,
tracegraph's IR and staging.

    executable, serialised_calls     the executable; serialised calls of its function
    passes                           the steps, and the passes in effect
    evaluation/                      nests as NumPy calls
    source/                          the plan as the text of a function
    reports                          signals
    arena, result_pool, node_owners  memory, and who owns it
"""
