"""The host backend: a plan on the CPU, as machine code or interpreted.

A Plan comes in, and a `HostExecutable` goes out, with the same arena offsets, in-place choices and
conditions as on a device. Its code is native, or that of the interpreter, which is simple and
complete: the reference for native code, what runs where that cannot, and what native code calls
for what it does not have. May import `lowering.plan`, `lowering.native`, tracegraph's IR and
staging.

    executable, serialised_calls     the executable; serialised calls of its function
    choice, chosen_code              native code or the interpreter
    code, section_times              what both make: a function of arguments; its timed sections
    interpreter/                     a plan as calls of NumPy
    arena, result_pool, owned_memory memory
    node_owners                      who owns it
"""
