"""The Plan: what a graph will be, as plain data, before any device is involved.

`lowering.planning` and the passes after it make Plans. `lowering.host` runs them, and
`lowering.codegen` and `lowering.cuda` make CUDA graphs of them. No file here knows a device. They
import `tracegraph.ir` and what that imports, and `lowering.errors`.

    plan               Plan: a graph, its buffers, their places in the arena
    nodes              the node protocol, kernels, copies and library calls, graphs
    conditional_nodes  branches and loops, with graphs as bodies
    kernel             what a kernel node computes: loop nests over scalar expressions
    library_call       what a library node calls: matrix_product, fourier, factorization,
                       lapack
    launch_nodes       what a CUDA graph has besides the work: loads of arguments, scratch
    launch_graph       the work of a Plan with these: what emission adds, and what is shown
    races              what no edge orders, though it shares memory: a check of a Plan
    serialization      edges between nodes that must not run at the same time
    sort               a node that sorts rows, and how: by length and dtype
    construct          the user's loops and branches, as nodes refer to them
    buffer             memory that a Plan names
    nest_analysis      expressions, reads and writes of a nest, computed once
    nest_rewriting     nests with expressions substituted and buffers renamed
    graph_composition  one graph of several
    weight             what estimates of a node's time are made from
    owners             what each node of an executable keeps alive
    target, hardware   costs and limits of the devices of a backend; sizes of all GPUs
    strides, rounding  arithmetic of layouts and sizes
    text, kernel_text, graphviz, explain    Plans for people
"""
