"""The Plan: what a graph will be, as plain data, before any device is involved.

`lowering.planning` and the passes after it make Plans. `lowering.host` runs them, and
`lowering.codegen` and `lowering.cuda` make CUDA graphs of them. No file here knows a device. They
import `tracegraph.ir` and what that imports, and `lowering.errors`.

    plan               Plan: a graph, its buffers, their places in the arena
    nodes              the node protocol, kernels, copies and library calls, graphs
    conditional_nodes  branches and loops, with graphs as bodies
    nests/             what a kernel node computes: loop nests over scalar expressions
    calls/             what a library node calls
    target/            what planning is given: costs and limits of a device, and forced choices
    reports/           Plans for people
    launch_nodes       what a CUDA graph has besides the work: loads of arguments, scratch
    launch_graph       the work of a Plan with these: what emission adds, and what is shown
    serialization      edges between nodes that must not run at the same time
    sort               a node that sorts rows, and how: by length and dtype
    construct          the user's loops and branches, as nodes refer to them
    graph_composition  one graph of several
    owners             what each node of an executable keeps alive
"""
