"""Device memory: who has how much of it, and when it may be used again.

Sizes come in, allocations go out; they come back when Python objects are collected.

    heap          all allocations of a device, and what is freed when there is not enough
    accounting    bytes in use by purpose
    pool          free lists by size class, and the buffers that calls return
    cross_stream  free lists, and deferred free of buffers that several streams use
    arena         scratch that the graphs of a stream share
    graph_memory  room for launches that allocate their scratch themselves
"""
