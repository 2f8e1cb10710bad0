"""What the CUDA backend asks of a driver: memory, graphs, capture, launches.

Graphs, nodes, conditions, kernels and executables are opaque here: only the driver that made them
looks inside. Addresses are ints. Every kernel parameter is eight bytes wide: an address, the handle
of a condition, or a word of a value.

    driver       Driver, all that is asked of one
    handles      what it hands out: memory, events; arrays of other libraries
    graph_nodes  nodes that it has added to graphs; complete graphs
    launch       what a kernel launch runs
    libraries    what is asked of a library whose calls are captured
"""

from lowering.cuda.interface.driver import *
from lowering.cuda.interface.graph_nodes import *
from lowering.cuda.interface.handles import *
from lowering.cuda.interface.launch import *
from lowering.cuda.interface.libraries import *
