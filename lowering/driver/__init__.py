"""The CUDA driver, as `lowering.cuda.interface.Driver`: only this folder imports cuda.bindings.

Graphs and conditional nodes are made through cuda.core, and all nodes are named by the driver's
handles. Kernel nodes, captures at given dependencies, exec parameter updates and copies are thin
calls of the driver.

    device        CudaDriver, one GPU
    graphs        edges, kernel parameters, captures
    whole_graphs  instantiation and updates, whose refusals name the node
    addresses     where memory is
    user_objects  owners that live as long as a graph, wherever it goes
    handles       memory, events, nodes, executables
    thread        the device made current in each thread
    checks        results of driver calls, and errors
"""

from lowering.driver.checks import CudaError
from lowering.driver.device import CudaDriver

__all__ = ["CudaDriver", "CudaError"]
