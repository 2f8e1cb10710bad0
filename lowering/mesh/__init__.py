"""Meshes: one Plan on all devices of a mesh, launched together.

executable   arguments in blocks, results in blocks, and the executable of each device
together     devices of the host, each a thread that meets the others
gpus         GPUs: they are launched together, and end together
"""
