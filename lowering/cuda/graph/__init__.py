"""Plan to CUDA graph: what is built once for each stream that runs a Plan.

A Plan and a device come in; a `Definition`, a graph that owns all that its nodes point to, goes
out, which `lowering.cuda.calls` instantiates. It imports nothing from there.

    placement            addresses of the arena, constants, workspaces, small inputs, pointers
    fixed_layout         where these are in the memory of one graph
    definition           a graph while it is built: the order of its steps
    emit                 every node of the Plan becomes nodes of the graph
    emission             the state of the graph meanwhile: addresses, conditions, users of buffers
    launch_nodes         what loads small inputs and addresses, and allocates scratch for a launch
    library_nodes        calls of libraries, captured
    node_owners          what each node keeps alive, by name
    built_graph          what calls need to know of a graph
    small_inputs         scalars and short arrays, by value through one root kernel
    pointer_table        addresses for bodies that take no parameter updates
    copies               kernels that copy
    handwritten_kernels  kernels of users and ours: their code on a device, their launches
    host_driven          loops and branches by the host, where conditional nodes are not to be used
"""
