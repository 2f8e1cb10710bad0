"""The CUDA backend: a Plan becomes one CUDA graph, launched by each call.

A Plan comes in; `calls.executable.CudaExecutable` goes out. All of it speaks to the GPU through
`interface.Driver`, which `lowering.driver` implements and a recording driver replaces in tests. It
may import planning's results (`lowering.plan`), `codegen`, `legalization` and `tracegraph`, but no
CUDA package: only `compilation` and `libraries` load those, inside functions.

    interface/    what the backend asks of a driver
    open_devices  what all executables on one GPU share
    compilation/  kernel source to cubin, and what all graphs of a Plan share
    graph/        Plan to graph: nodes, edges, addresses, owners
    recipe/       graphs as data, which files bring along
    libraries/    calls of cuBLAS, cuFFT, cuSOLVER and of users, captured
    calls/        binding arguments, updating addresses, launching
    streams/      per-stream state; waiting for launches, stopping loops, shutdown
    memory/       the heap, pools, arenas, and frees that wait for other streams
    effects/      prints, failed checks and progress on their way to the host
"""
