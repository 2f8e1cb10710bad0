"""Kernels and functions that users write in CUDA C++, each with a NumPy reference.

    kernel         a kernel of its own in the graph

May import `numpy`, `arrays`, `tracing`, `ops`, `ir`, and what is below them.
"""

from tracegraph.custom.kernel import Kernel, kernel

__all__ = ["Kernel", "kernel"]
