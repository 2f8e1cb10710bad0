"""The CUDA backend: a Plan becomes one CUDA graph.

    compile.py     kernel source -> cubin, by NVRTC with a disk cache
    heap.py        device memory, and what is tried when there is not enough
    holdings.py    how much of it is in use, by purpose
    memory.py      the pool of device memory, and the buffers that calls return
    device.py      what all executables on one GPU share
    lane.py        a stream, with the memory that is its own
    lanes.py       the streams in use; how one is left
    timeline.py    what is in flight: waiting for it, stopping its loops
    flight.py      a launch with loops
    printing.py    the ring through which programs print
    mailbox.py     words by which kernels report failures and count steps
    last_use.py    whose turn it is to print, or to run WHILE nodes
    effects.py     what an executable reports, and the memory that it takes
    watching.py    the thread that shows progress
    placement.py   where a Plan's fixed memory lies
    graph_memory.py  room for launches that allocate their scratch
    values.py      small inputs, passed by value through one root kernel
    table.py       addresses by a table, where bodies take no new ones
    copies.py      kernels that copy
    library.py     matrix products as cuBLAS calls
    probes.py      what the device's graphs can do, found by trying
    definition.py  a graph while it is built: the order of its steps
    keeping.py     what each node keeps alive, by name
    emit.py        Plan -> graph definition
    turns.py       one capture at a time
    capture.py     library calls -> checked nodes
    hostdriven.py  loops and branches by the host, where graphs have none
    arguments.py   what a call passes -> device addresses
    blueprint.py   what the graphs of a Plan have in common: code, constants
    instance.py    the graph for one stream: binding, updating, launching
    patching.py    addresses -> the parameters of kernel nodes
    replicas.py    executables of one graph, for addresses that come back
    quick.py       calls by a function written for the graph
    export.py      a graph to give away
    executable.py  a Plan on a device, with an instance for each stream

All of it speaks to the GPU through `interface.Driver`, which `lowering.driver` implements and which
the recording backend stands in for.
"""
