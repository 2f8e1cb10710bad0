"""Persistent kernels: the text of a launch that runs a whole graph of phases.

A `PersistentKernelNode` comes in; a function and how it is launched go out.

    persistent_kernel  the function: its head, its parameters and its body
    persistent_layout  its phases, and where what they share is
    phases             nodes -> statements, with barriers between those that depend on each other
    phase_geometry     how the threads of the kernel share the work of a nest
    storage            buffers in registers and shared memory
    swapped_carries    double buffering of carries
    peer_exchanges     exchanges with other devices, of few words or by peer_arrays
    peer_rooms         where devices have what the others store
    sent_in_turns      double buffering of what is sent to others
    running_blocks     how many blocks of a kernel take part in its phases
    lane_kernel        the function where each thread makes all steps of one lane
    lane_graph         what one thread runs then: nests without the axes of lanes
    surroundings       what the rest of the Plan does with the buffers of a kernel
"""
