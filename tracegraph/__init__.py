"""tracegraph: pure NumPy-style functions, loops and branches included, as one CUDA graph."""

from tracegraph import debug, errors, memory, numpy, tree
from tracegraph.arrays.array import Array
from tracegraph.arrays.creation import asarray, from_dlpack
from tracegraph.control import cond, fori_loop, map, scan, switch, while_loop
from tracegraph.ir.types import ArrayType
from tracegraph.limits import time_limit
from tracegraph.memory import memory_stats, reset
from tracegraph.numpy import methods as _methods  # noqa: F401 - what operators call
from tracegraph.staging.jit import jit, make_program
from tracegraph.streams import Stream, stream
from tracegraph.tree import register_dataclass
from tracegraph.version import __version__

__all__ = [
    "Array",
    "ArrayType",
    "Stream",
    "__version__",
    "asarray",
    "cond",
    "debug",
    "errors",
    "fori_loop",
    "from_dlpack",
    "jit",
    "make_program",
    "map",
    "memory",
    "memory_stats",
    "numpy",
    "register_dataclass",
    "reset",
    "scan",
    "stream",
    "switch",
    "time_limit",
    "tree",
    "while_loop",
]


def __dir__() -> list[str]:
    return sorted(__all__)  # not the packages that it is made of
