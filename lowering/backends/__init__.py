"""Backends: a device by its name, and what compiles Plans for it.

A Plan comes in, an executable goes out. Each backend is one class with a frozen `Target`, which
planning reads; `tracegraph.staging.interfaces.Backend` has its methods. This folder may import all
of lowering, but imports the executors only when a device is used.

    registry      devices by name, entry points of others' backends, work on all backends in use
    gpus          how many there are; the driver, started beside other work
    cuda_backend  one CUDA graph on an NVIDIA GPU; cuda: what planning knows of these
    host          machine code on the CPU, or the interpreter
"""

from tracegraph.arrays.device_buffer import DeviceBuffer as DeviceBuffer
from tracegraph.staging.interfaces import Backend as Backend
from tracegraph.staging.interfaces import Executable as Executable
