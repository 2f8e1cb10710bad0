"""Plan to CUDA graph: what is built once for each stream that runs a Plan.

A Plan and a device come in; a `Definition`, a graph that owns all that its nodes point to, goes
out, which `lowering.cuda.calls` instantiates. It imports nothing from there.

    compiled_plan    what the graphs of a Plan for all streams share: code, constants, features
    feature_probes   what the device's graphs can do, found by trying
    placement        addresses of the arena, constants, workspaces, small inputs, pointers
    definition       a graph while it is built: the order of its steps
    emit             every node of the Plan becomes nodes of the graph
    emission         the state of the graph meanwhile: addresses, conditions, users of buffers
    launch_nodes     what loads small inputs and addresses, and allocates scratch for a launch
    node_owners      what each node keeps alive, by name
    small_inputs     scalars and short arrays, by value through one root kernel
    pointer_table    addresses for bodies that take no parameter updates
    pointer_arrays   addresses of matrices, which library calls read from memory
    copies           kernels that copy
    library_calls    how each class of library call is planned and captured
    capture          what a library put into the graph, checked
    capture_lock     one capture at a time
    cublas           matrix products and triangular systems as cuBLAS calls
    cufft, cusolver  Fourier transforms as cuFFT plans; factorizations as cuSOLVER calls
    host_driven      loops and branches by the host, where conditional nodes are not to be used
"""
