"""tracegraph: pure NumPy-style functions, loops and branches included, as one CUDA graph.

`jit` traces a function on its first call with given types, compiles the trace to one graph, and
launches that graph from then on. Without a GPU, the same plan runs on the host.

>>> import numpy as np
>>> import tracegraph
>>> @tracegraph.jit
... def collatz(n):
...     def step(state):
...         n, steps = state
...         return np.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1
...     return tracegraph.while_loop(lambda state: state[0] != 1, step, (n, 0))[1]
>>> int(collatz(27))
111

The packages, in the order of their imports:

    errors, tree      error classes; pytrees               passes       Program -> Program
    inspection        pictures, pages, `show`
    ir, ops           programs; op records                 numpy        NumPy's functions for arrays
    tracing           Python calls -> equations            control      cond, while_loop, scan, …
    arrays            the Array class, eager ops           transforms   grad, jvp, vmap, …
    staging           jit: compile and launch              special      special functions
    linalg        more of linear algebra                   random       random numbers
    sparse        sparse matrices, folds by segment
                                                           custom       kernels of your own

Below them are single files without imports of the package (`dtypes`, `user_source`, `locks`, …);
`limits`, `modes`, `progress`, `streams`, `memory`, `raw_memory`, `capabilities`, `callbacks`,
`event` and `debug` are features of one file each, `c_functions` is what `callbacks` checks.
"""

from typing import TYPE_CHECKING

from tracegraph import debug, errors, event, linalg, memory, numpy, random, sparse, special, tree
from tracegraph.arrays.array import Array
from tracegraph.arrays.creation import asarray, from_dlpack
from tracegraph.callbacks import host_call, pure_callback
from tracegraph.capabilities import DeviceFeatures, features
from tracegraph.control import cond, fori_loop, map, scan, switch, while_loop
from tracegraph.custom import capture, elementwise, embed, kernel, reduction
from tracegraph.errors.names_elsewhere import names_of as _names_of
from tracegraph.inspection.show import show
from tracegraph.ir import display as _views  # noqa: F401 - printers
from tracegraph.ir.types import ArrayType
from tracegraph.limits import time_limit
from tracegraph.memory import memory_stats, reset
from tracegraph.modes import check_indices, deterministic
from tracegraph.numpy.dispatching import methods as _methods  # noqa: F401 - what operators call
from tracegraph.numpy.windows import dynamic_slice, dynamic_update_slice
from tracegraph.raw_memory import owned
from tracegraph.staging.jit import jit, make_program
from tracegraph.streams import Stream, stream
from tracegraph.transforms.batching.vmap import vmap
from tracegraph.transforms.derivatives.checkpoint import checkpoint
from tracegraph.transforms.derivatives.custom import custom_jvp, custom_vjp
from tracegraph.transforms.derivatives.forward import jvp, linearize, stop_gradient
from tracegraph.transforms.derivatives.implicit import custom_linear_solve, custom_root
from tracegraph.transforms.derivatives.jacobians import hessian, jacfwd, jacrev
from tracegraph.transforms.derivatives.linear import linear_transpose
from tracegraph.transforms.derivatives.reverse import grad, value_and_grad, vjp
from tracegraph.tree import register_dataclass
from tracegraph.version import __version__

__all__ = [
    "Array",
    "ArrayType",
    "DeviceFeatures",
    "Stream",
    "__version__",
    "asarray",
    "capture",
    "check_indices",
    "checkpoint",
    "cond",
    "custom_jvp",
    "custom_linear_solve",
    "custom_root",
    "custom_vjp",
    "debug",
    "deterministic",
    "dynamic_slice",
    "dynamic_update_slice",
    "elementwise",
    "embed",
    "errors",
    "event",
    "features",
    "fori_loop",
    "from_dlpack",
    "grad",
    "hessian",
    "host_call",
    "jacfwd",
    "jacrev",
    "jit",
    "jvp",
    "kernel",
    "linalg",
    "linear_transpose",
    "linearize",
    "make_program",
    "map",
    "memory",
    "memory_stats",
    "numpy",
    "owned",
    "pure_callback",
    "random",
    "reduction",
    "register_dataclass",
    "reset",
    "scan",
    "show",
    "sparse",
    "special",
    "stop_gradient",
    "stream",
    "switch",
    "time_limit",
    "tree",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]


if not TYPE_CHECKING:  # a type checker would find any name in a module that has this
    __getattr__ = _names_of(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)  # not the packages that it is made of
