"""Kernels and functions that users write in CUDA C++, each with a NumPy reference.

    kernel         a kernel of its own in the graph
    elementwise    functions of elements, which are fused
    capture        the work of other libraries

May import `numpy`, `arrays`, `tracing`, `ops`, `ir`, and what is below them.
"""

from tracegraph.custom.capture import CapturedCall, capture
from tracegraph.custom.elementwise import ElementwiseFunction, elementwise
from tracegraph.custom.kernel import Kernel, kernel

__all__ = ["CapturedCall", "ElementwiseFunction", "Kernel", "capture", "elementwise", "kernel"]
