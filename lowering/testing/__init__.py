"""The recording driver: `lowering.cuda` without a GPU, for tests. It is not in the wheel.

Nothing that ships imports it.

    recording_driver  the driver interface as a log, with failures on request, and its backend
    recorded_objects  graphs, nodes, memory and events as plain data
"""
