"""Persistent kernels: the text of a launch that runs a whole graph of phases.

A `PersistentKernelNode` comes in; a function and how it is launched go out.

    persistent_kernel  the function: its head, its parameters and its body
    persistent_layout  its phases, and where what they share is
    phases             nodes -> statements, with barriers between those that depend on each other
    phase_geometry     how the threads of the kernel share the work of a nest
    storage            buffers in registers and shared memory
    exchanges          double buffering of carries
    lane_kernel        the function where each thread makes all steps of one lane
    lane_graph         what one thread runs then: nests without the axes of lanes
    surroundings       what the rest of the Plan does with the buffers of a kernel
"""
