"""The recording driver: `lowering.cuda` without a GPU, for tests. It is not in the wheel.

Nothing that ships imports it.

    recording_backend    the backend that compiles against the driver
    recording_driver     the driver interface as a log: streams, events, code, and its parts
    memory_recorder      memory
    graph_recorder       nodes, edges and conditions
    capture_recorder     calls of libraries, captured
    executable_recorder  instantiation, updates, launches
    derived_calls        calls that the interface alone says how to log
    call_log             the log, with failures on request
    recorded_objects     graphs, nodes, memory and events as plain data
"""
