"""Meshes: one Plan on all devices of a mesh, launched together.

executable             arguments in blocks, results in blocks, and the executable of each device
together               devices of the host, each a thread that meets the others
meeting_of_processes   where they meet, if several processes share the mesh
same_program           the check that all processes build the same program
gpus                   GPUs: they are launched together, and end together
building               graphs of all devices, which meet while they are made
launching              launches in one order in all threads, and those whose loops the host drives
"""
