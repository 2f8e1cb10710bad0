"""Names that other libraries have for what is here under another name: what an error says.

Users of JAX type `lax.fori_loop`, `init_val=` or `keep_unused=`, those of PyTorch `x.detach()`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

import numpy as np

_LIKE_NUMPY = ("tracegraph", "tracegraph.numpy")
"""Modules where users look for NumPy's functions."""

_KEYWORDS: Mapping[str, Mapping[str, str]] = {
    "while_loop": {"init_val": "init", "cond": "cond_fun", "body": "body_fun"},
    "fori_loop": {"init_val": "init", "body": "body_fun"},
    "scan": {"body": "f", "carry": "init", "_split_transpose": "nothing: it is not needed"},
    "map": {
        "batch_size": "nothing: items are mapped one by one; for groups of items write "
        "tracegraph.map of tracegraph.vmap(f), with xs reshaped to (groups, size, ...)"
    },
    "cond": {
        "operand": "the operands, one after another, behind the functions",
        "operands": "",
        "linear": "nothing: what is linear is found out",
    },
    "switch": {"operand": "the operands, one after another, behind the branches", "operands": ""},
    "jit": {
        "keep_unused": "nothing: arguments that are not used are never read",
        "inline": "nothing: a jitted function that is called in a traced one is part of it",
        "backend": "device=, 'host' or 'cuda'",
        "in_shardings": "nothing: a call runs on one GPU",
        "out_shardings": "nothing: a call runs on one GPU",
        "compiler_options": "nothing: device=, scratch= and max_builds= are the options",
        "abstracted_axes": "nothing: a function is built for each shape",
        "nopython": "nothing: a function is traced as a whole, or refused",
        "fullgraph": "nothing: a function is traced as a whole, or refused",
        "parallel": "nothing: large loops have threads; tracegraph.set_threads limits them",
        "fastmath": "nothing: sums keep one order, so that results have the same bits each time",
        "cache": "nothing: compiled code is kept on disk",
        "nogil": "nothing: calls of several threads run side by side",
        "boundscheck": "nothing: call the function inside of tracegraph.check_indices()",
        "target": "device=, 'host' or 'cuda'",
        "mode": "nothing: a call is one graph",
        "dynamic": "nothing: a function is built for each shape",
    },
    "register_dataclass": dict.fromkeys(
        ("data_fields", "meta_fields", "drop_fields"),
        "nothing: all fields are data but those that dataclasses.field(metadata={'static': True}) "
        "declares",
    ),
    "pure_callback": {
        "vectorized": "vmap_method=",
        "sharding": "nothing: a call runs on one GPU",
        "result_shape_dtypes": "the types as the second argument, tracegraph.ArrayType or arrays",
    },
}
"""By function, keywords of other libraries and what to pass instead."""

_LOWERED = "lower(*args)"
_COMPILED = "lower(*args).compile()"
OF_STAGES: Mapping[str, str] = {
    "program": "trace(*args).program",
    **{name: f"{_LOWERED}.{name}" for name in ("plan", "nodes", "edges", "source")},
    **{name: f"{_LOWERED}.{name}()" for name in ("explain", "dot", "compile")},
    "graph": f"{_COMPILED}.graph",
    "memory": f"{_COMPILED}.memory",
    "export_graph": f"{_COMPILED}.export_graph(*args)",
    "export": "tracegraph.export(f, *args)",
}
"""What a stage of a jitted function has, and not the function: how to get it."""


def missing_of_jitted(jitted: object, name: str) -> AttributeError:
    """The error of an attribute that a jitted function does not have, but one of its stages."""
    function = vars(jitted).get("__name__", "f")
    message = f"the jitted function {function} has no attribute {name!r}"
    known = OF_STAGES[name]
    owner = function if function.isidentifier() else "f"
    written = known if known.startswith("tracegraph") else f"{owner}.{known}"
    text = f"{message}; it depends on types of arguments: {written}"
    return AttributeError(text, name=name, obj=jitted)


_CLASSES = {
    **{name: name.lower() for name in ("ReLU", "GELU", "SiLU", "Mish", "ELU", "SELU", "Sigmoid")},
    "Tanh": "tanh",
    "Softmax": "softmax",
    "LogSoftmax": "log_softmax",
    "Softplus": "softplus",
}
_CROSS_ENTROPY = (
    "use -numpy.mean(numpy.sum(tracegraph.nn.one_hot(classes, n) * "
    "tracegraph.nn.log_softmax(scores), -1))"
)
_STANDARDIZE = "use tracegraph.nn.standardize, and multiply by weights"
_WINDOWS = "use numpy.lib.stride_tricks.sliding_window_view(x, window) and numpy.einsum"

OTHERS: Mapping[str, Mapping[str, str]] = {
    "tracegraph": {
        "tensor": "use tracegraph.asarray(x, device=device)",
        "Tensor": "the class of arrays is tracegraph.Array",
        "from_numpy": "NumPy's arrays are arguments as they are; "
        "tracegraph.asarray(x, device='cuda') copies one to a GPU, once",
        "no_grad": "nothing is needed: only what tracegraph.grad is asked for is differentiated; "
        "tracegraph.stop_gradient leaves a value out",
        "autograd": "use tracegraph.grad, tracegraph.vjp and tracegraph.custom_vjp",
        "func": "use tracegraph.grad, tracegraph.vmap and their relatives",
        "optim": "write the step by tracegraph.tree.map over weights and gradients",
        "manual_seed": "use tracegraph.random.key(seed), and pass the key",
        "cuda": "pass device='cuda' to tracegraph.jit and tracegraph.asarray; "
        "tracegraph.block_until_ready waits for a result, and tracegraph.stream chooses a stream",
        "synchronize": "use tracegraph.block_until_ready of a result",
        "asnumpy": "use numpy.asarray(x)",
        "get_array_module": "nothing is needed: NumPy's functions take Arrays and traced values",
        "ElementwiseKernel": "use NumPy's functions, which are fused, or tracegraph.elementwise",
        "ReductionKernel": "use NumPy's reductions, or tracegraph.reduction",
        "RawKernel": "use tracegraph.kernel",
        "RawModule": "use tracegraph.kernel for each kernel",
        "fuse": "nothing is needed: tracegraph.jit fuses what it can",
        "get_default_memory_pool": "use tracegraph.memory_stats and tracegraph.memory.trim",
        "njit": "use tracegraph.jit(f, device='host')",
        "prange": "use tracegraph.vmap of the function of one item",
        "guvectorize": "use tracegraph.vmap of the function of one item",
        "stencil": "use slices of numpy.pad(x, 1), which are fused",
        "jitclass": "use tracegraph.register_dataclass",
        "objmode": "use tracegraph.pure_callback",
        "set_num_threads": "use tracegraph.set_threads",
        "get_num_threads": "use tracegraph.get_threads",
    },
    "tracegraph.nn": {
        **{name: f"use tracegraph.nn.{ours}" for name, ours in _CLASSES.items()},
        "Module": "a network is a function of its weights, which are a tree of arrays",
        "Parameter": "weights are a tree of arrays, and an argument",
        "Sequential": "call one function after the other",
        "functional": "its functions are those of tracegraph.nn",
        "Linear": "write x @ w + b, with w and b among the weights",
        "Embedding": "write table[tokens], with the table among the weights",
        "Conv1d": _WINDOWS,
        "Conv2d": _WINDOWS,
        "Dropout": "use numpy.where(tracegraph.random.bernoulli(key, keep, x.shape), x / keep, 0)",
        "BatchNorm1d": _STANDARDIZE,
        "LayerNorm": _STANDARDIZE,
        "CrossEntropyLoss": _CROSS_ENTROPY,
        "cross_entropy": _CROSS_ENTROPY,
        "MSELoss": "use numpy.mean((x - y)**2)",
        "mse_loss": "use numpy.mean((x - y)**2)",
    },
}
"""By module, names of PyTorch, CuPy and Numba, and what to write instead."""

_GRADIENT = "use tracegraph.grad(f)(x), whose result is the gradient"
_ON_THE_HOST = "use numpy.asarray(x) of a result"
_PLACED = "use tracegraph.device_put(x, device)"

OF_ARRAYS: Mapping[str, str] = {
    **dict.fromkeys(("get", "numpy", "cpu", "copy_to_host"), _ON_THE_HOST),
    **dict.fromkeys(("backward", "grad", "requires_grad", "requires_grad_"), _GRADIENT),
    **dict.fromkeys(("cuda", "to"), _PLACED),
    "block_until_ready": "use tracegraph.block_until_ready(x)",
    "sharding": "use x.device, and x.addressable_shards",
    "detach": "use tracegraph.stop_gradient(x)",
    "contiguous": "nothing is needed: how an array is laid out makes no difference",
    "unsqueeze": "use numpy.expand_dims(x, axis)",
    "permute": "use x.transpose(axes)",
    "expand": "use numpy.broadcast_to(x, shape)",
    "numel": "use x.size",
    "dim": "use x.ndim",
    "clamp": "use x.clip(low, high)",
    "masked_fill": "use numpy.where(mask, value, x)",
    "float": "use x.astype(numpy.float32)",
    "double": "use x.astype(numpy.float64)",
    "half": "use x.astype(numpy.float16)",
    "long": "use x.astype(numpy.int64)",
    "norm": "use numpy.linalg.norm(x)",
    **{
        name: f"use numpy.{name}(x)"
        for name in ("abs", "exp", "log", "sqrt", "square", "sin", "cos", "tanh", "sign", "isnan")
    },
    "mm": "use x @ y",
    "bmm": "use x @ y",
}
"""Attributes of arrays of other libraries, and what to write instead."""


def missing_of_array(described: str, name: str, array: object) -> AttributeError:
    """The error of an attribute that an Array or a traced value does not have."""
    known = OF_ARRAYS.get(name)
    if known is None and callable(getattr(np, name, None)):
        known = f"use numpy.{name}(x)"
    elif known is None and name.endswith("_") and not name.startswith("_"):
        known = (
            "write to a copy (y = x.copy(); y += v), or use x.at[index], which gives a new array"
        )
    message = f"{described} has no attribute {name!r}"
    text = message if known is None else f"{message}; {known}"
    return AttributeError(text, name=name, obj=array)


class Elsewhere:
    """An attribute of a class that is not had: to read it raises an error that says what is.

    A `__getattr__` would do the same, but takes 14 ns more at each attribute that is had.
    """

    def __init__(self, name: str, error: Callable[[Any, str], AttributeError]) -> None:
        self.name, self.error = name, error

    def __get__(self, instance: object, owner: type) -> NoReturn:
        if instance is None:
            message = f"type object {owner.__name__!r} has no attribute {self.name!r}"
            raise AttributeError(message, name=self.name, obj=owner)
        raise self.error(instance, self.name)


def answer(cls: type, names: Iterable[str], error: Callable[[Any, str], AttributeError]) -> None:
    """Let a class answer names that it does not have by an error; `dir` does not list them."""
    for name in set(names).difference(dir(cls)):
        setattr(cls, name, Elsewhere(name, error))

    def __dir__(self: object) -> list[str]:  # noqa: N807
        return [name for name in object.__dir__(self) if not isinstance(_of(cls, name), Elsewhere)]

    cls.__dir__ = __dir__  # type: ignore[method-assign, assignment]


def _of(cls: type, name: str) -> object:
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)


def missing_name(module: str, name: str) -> AttributeError:
    """The error of a name that a module does not have."""
    message = f"module {module!r} has no attribute {name!r}"
    known = None if name.startswith("_") else _advice(module, name)
    return AttributeError(message if known is None else f"{message}; {known}", name=name)


def _advice(module: str, name: str) -> str | None:
    from tracegraph.errors.names_of_jax import NAMES  # nobody needs it without a mistake

    known = NAMES.get(module, {}).get(name) or OTHERS.get(module, {}).get(name)
    if known is None and module in _LIKE_NUMPY and name in np.__all__:
        return f"use NumPy's own, numpy.{name}"
    return known


def names_of(module: str) -> Callable[[str], NoReturn]:
    """The `__getattr__` of a module."""

    def __getattr__(name: str) -> NoReturn:  # noqa: N807
        raise missing_name(module, name)

    return __getattr__


def keyword_advice(function: str, error: TypeError) -> str | None:
    """What to pass instead of an unexpected keyword argument that another library has."""
    text = str(error)
    if "unexpected keyword argument" not in text:
        return None
    known: Any = _KEYWORDS.get(function, {}).get(text.rpartition(" ")[2].strip("'"))
    if known is None:
        return None
    known = known or "it by position"
    return f"pass {known}" if "=" in known or " " in known else f"pass {known}="
