"""Meshes: one Plan on all devices of a mesh, launched together.

executable   arguments in blocks, results in blocks, and the executable of each device
together     how the devices are launched: each in a thread, which on the host meets the others
"""
