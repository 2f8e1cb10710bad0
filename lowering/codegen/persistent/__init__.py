"""Persistent kernels: the text of a launch that runs a whole graph of stages.

kernel          PersistentKernelNode -> its function, and how it is launched
stages          nodes -> statements, with barriers between those that depend on each other
stage_geometry  how the threads of the kernel share the work of a nest
storage         buffers in registers and shared memory
"""
