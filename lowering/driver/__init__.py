"""The CUDA driver, as `lowering.cuda.interface.Driver`: only this folder imports cuda.bindings.

Graphs and conditional nodes are made through cuda.core, and all nodes are named by the driver's
handles. Kernel nodes, captures at given dependencies, exec parameter updates and copies are thin
calls of the driver.

    cuda_driver       CudaDriver, one GPU by one stream of launches and copies
    device            what all streams of a GPU share: code, graphs, captures
    graph_nodes       nodes that are added to graphs, their edges and parameters
    graphs            which nodes graphs have; captures into graphs
    graph_views       nodes and edges for people to look at; switches and priorities of nodes
    captured_kernels  captures that are kernels alone, repeated for their parameters
    whole_graphs      instantiation and updates, whose refusals name the node
    executables       updates of kernel nodes, and launches
    memory_resources  pools, and pinned memory
    addresses         where memory is
    foreign_arrays    device memory of other libraries
    core_buffers      allocations of cuda.core's Buffers, which somebody may close
    foreign_captures  work beside captures by other code, and in them
    user_objects      owners that live as long as a graph, wherever it goes
    handles           memory, code, events, executables
    thread            the device made current in each thread
    error_checks      results of driver calls, and errors
    clean_up          results of calls that free something, and warnings
"""

from lowering.driver.cuda_driver import CudaDriver as CudaDriver
from lowering.driver.error_checks import CudaError as CudaError
