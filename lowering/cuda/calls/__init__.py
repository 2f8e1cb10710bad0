"""Calls: arguments come in, the graph of the current stream is launched, results go out.

Nothing here waits for the device, except behind a full queue of loops.

    graph_executable   a graph for each stream that calls it
    executable         the same of a Plan on a device
    stream_graph       the graph for one stream: binding, updating, launching
    fast_call          the same for the usual arguments, as a generated function
    addressed_call     the same for memory of another library, by its addresses alone
    arguments          what a call passes, as device addresses
    donated_arguments  arguments that outputs are written over
    address_updates    exec parameter updates of the nodes that hold changed addresses
    replicas           several executables of one graph, for addresses that come back
    export             a graph with fixed arguments, to give away
"""
