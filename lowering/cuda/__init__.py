"""The CUDA backend: a Plan becomes one CUDA graph.

    compile.py     kernel source -> cubin, by NVRTC with a disk cache
    memory.py      the pool of device memory, and the buffers that calls return
    device.py      what all executables on one GPU share
    placement.py   where a Plan's fixed memory lies
    values.py      small inputs, passed by value through one root kernel
    copies.py      kernels that copy
    library.py     matrix products as cuBLAS calls
    emit.py        Plan -> graph definition
    arguments.py   what a call passes -> device addresses
    executable.py  binding, updating, launching

All of it speaks to the GPU through `interface.Driver`, which `lowering.driver` implements and which
the recording backend stands in for.
"""
