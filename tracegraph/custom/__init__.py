"""Kernels and functions that users write in CUDA C++, each with a NumPy reference.

    kernel         a kernel of its own in the graph
    elementwise    functions of elements, which are fused

May import `numpy`, `arrays`, `tracing`, `ops`, `ir`, and what is below them.
"""

from tracegraph.custom.elementwise import ElementwiseFunction, elementwise
from tracegraph.custom.kernel import Kernel, kernel

__all__ = ["ElementwiseFunction", "Kernel", "elementwise", "kernel"]
