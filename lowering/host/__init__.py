"""The host backend: a plan as one Python function of NumPy calls on the CPU.

In comes a Plan, out goes a `HostExecutable` with the same arena offsets, in-place choices and
conditions as on a device. The files here are the plain interpreter: one way to evaluate each nest,
with each value in a temporary of its own. `tuning` only makes the calls cheaper, and joins through
`passes.py` alone; `TRACEGRAPH_HOST=plain` leaves it out. May import `lowering.plan`,
tracegraph's IR and staging.

    executable, calls                  the executable; serialised calls of its function
    passes                             the stages, and the passes in effect
    nests, nest_program, hazards       kinds of nests as instructions; placing their temporaries
    evaluate, axis_dependence          scalar expressions as NumPy calls over a whole space
    access_maps, load_forms            loads and stores as views or gathers
    strided_views, dynamic_offsets     the windows of access maps; offsets that data decides
    instructions, numpy_calls          the data, and the calls that it names
    plan_function, control_flow        code generation: the plan, its graphs,
    call_emitter, array_names            nests, and names
    python_source                      the text of a function while it is written
    prints, reports                    print and call nests, signals
    arena, result_pool, node_owners    memory, and who owns it
    numpy_workarounds                  where NumPy's loops are wrong
"""
