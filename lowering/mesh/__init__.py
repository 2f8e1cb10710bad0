"""Meshes: one Plan on all devices of a mesh, launched together.

executable   arguments in blocks, results in blocks, and the executable of each device
together     how the devices are launched: in threads that meet, or one after the other
"""
