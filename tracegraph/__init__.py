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
    array_api         the namespace of arrays              random       random numbers
    linalg            more of linear algebra               saving       programs in files
    sparse            sparse matrices, folds by segment    custom       kernels of your own
    sharding          meshes of devices                    interop      what others must be told
    distributed       several processes                    torch, jax   functions of their arrays

Below them are single files without imports of the package (`dtypes`, `user_source`, `locks`, …);
`limits`, `modes`, `progress`, `streams`, `memory`, `raw_memory`, `capabilities`, `callbacks`,
`event` and `debug` are features of one file each, `c_functions` is what `callbacks` checks,
`public_names` gathers the names of a package, and `single_imports` imports modules of others.
`generated` is code that is written at run time.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

from tracegraph import errors as errors
from tracegraph import memory as memory
from tracegraph import tree as tree
from tracegraph.arrays.array import Array as Array
from tracegraph.arrays.creation import *
from tracegraph.capabilities import *
from tracegraph.concurrency.threads import get_threads as get_threads
from tracegraph.concurrency.threads import set_threads as set_threads
from tracegraph.errors.names_elsewhere import missing_name as _missing_name
from tracegraph.ir.types import ArrayType as ArrayType
from tracegraph.limits import time_limit as time_limit
from tracegraph.memory import memory_stats as memory_stats
from tracegraph.memory import reset as reset
from tracegraph.modes import *
from tracegraph.public_names import set_all as _set_all
from tracegraph.raw_memory import *
from tracegraph.staging.jit import *
from tracegraph.streams import *
from tracegraph.tree import register_dataclass as register_dataclass
from tracegraph.version import __version__ as __version__

if TYPE_CHECKING:
    from tracegraph import array_api as array_api
    from tracegraph import cache as cache
    from tracegraph import debug as debug
    from tracegraph import distributed as distributed
    from tracegraph import event as event
    from tracegraph import interop as interop
    from tracegraph import jax as jax
    from tracegraph import linalg as linalg
    from tracegraph import nn as nn
    from tracegraph import numpy as numpy
    from tracegraph import random as random
    from tracegraph import sparse as sparse
    from tracegraph import special as special
    from tracegraph import torch as torch
    from tracegraph.callbacks import *
    from tracegraph.control import *
    from tracegraph.custom import *
    from tracegraph.distributed.membership import process_count as process_count
    from tracegraph.distributed.membership import process_index as process_index
    from tracegraph.inspection.show import *
    from tracegraph.numpy.windows import *
    from tracegraph.saving import *
    from tracegraph.sharding import *
    from tracegraph.staging.placement import *
    from tracegraph.transforms import *

_MODULES = (
    *("array_api", "cache", "debug", "distributed", "event", "interop", "linalg", "nn", "numpy"),
    *("random", "sparse", "special"),
)
_FOR_OTHERS = ("jax", "torch")
"""Modules that import another library, so a star import leaves them out."""

_FUNCTIONS = {
    "callbacks": ("host_call", "pure_callback"),
    "control": ("associative_scan", "cond", "fori_loop", "map", "scan", "switch", "while_loop"),
    "custom": ("capture", "elementwise", "embed", "kernel", "reduction"),
    "distributed": ("process_count", "process_index"),
    "inspection.show": ("show",),
    "numpy.windows": ("dynamic_slice", "dynamic_update_slice"),
    "saving": ("Exported", "export", "load", "save"),
    "sharding": (
        *("Mesh", "PartitionSpec", "all_gather", "all_to_all", "axis_index", "axis_size", "halo"),
        *("pmax", "pmean", "pmin", "ppermute", "psum", "psum_scatter", "shard", "shard_map"),
    ),
    "staging.placement": (
        *("all_gather_to_host", "block_until_ready", "device_get", "device_put"),
        "make_array_from_local",
    ),
    "transforms": (
        *("checkpoint", "custom_jvp", "custom_linear_solve", "custom_root", "custom_vjp", "grad"),
        *("hessian", "jacfwd", "jacrev", "jvp", "linear_transpose", "linearize"),
        *("stop_gradient", "value_and_grad", "vjp", "vmap"),
    ),
}
"""Modules of public functions. These and `_MODULES` are imported when they are first used."""

_MODULE_OF = {name: module for module, names in _FUNCTIONS.items() for name in names}

_all = _set_all(__name__, "__version__", "errors", "memory", "tree", *_MODULES, *_MODULE_OF)


def __dir__() -> list[str]:
    return _all  # not the packages that it is made of


if not TYPE_CHECKING:  # a type checker would find any name in a module that has this

    def __getattr__(name: str) -> _Any:
        if name in _MODULES or name in _FOR_OTHERS:
            return _import_module(f"{__name__}.{name}")
        if name not in _MODULE_OF:
            raise _missing_name(__name__, name)
        module = _import_module(f"{__name__}.{_MODULE_OF[name]}")
        found = globals()[name] = getattr(module, name)
        return found
