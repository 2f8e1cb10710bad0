"""The CUDA driver, as `lowering.cuda.interface.Driver`: the only package that calls cuda.bindings.

Graphs and conditional nodes are made through cuda.core, and all nodes are named by the driver's
handles. The rest are thin calls of the driver: kernel nodes, capture at given dependencies, updates
of executables, copies.

    device    CudaDriver, one GPU
    graphs    edges, kernel parameters, captures
    thread    the device made current in each thread
    handles   what it hands out: memory, events, nodes, executables
    checks    the answers of driver calls, and the error
"""

from lowering.driver.checks import CudaError
from lowering.driver.device import CudaDriver

__all__ = ["CudaDriver", "CudaError"]
