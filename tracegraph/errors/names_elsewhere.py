"""Names that other libraries have for what is here under another name: what an error says.

Users of JAX type `lax.fori_loop`, `init_val=` or `keep_unused=`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

_LEAVES = "tracegraph.tree.leaves(x)"

_NAMES: Mapping[str, Mapping[str, str]] = {
    "tracegraph": {
        "lax": "control flow is tracegraph.cond, switch, while_loop, fori_loop, scan and map; "
        "other functions are those of tracegraph.numpy, tracegraph.dynamic_slice and "
        "tracegraph.stop_gradient",
        "tree_util": "use tracegraph.tree: map, flatten, unflatten, leaves, structure",
        "tree_map": "use tracegraph.tree.map",
        "tree_leaves": "use tracegraph.tree.leaves",
        "tree_flatten": "use tracegraph.tree.flatten",
        "scipy": "use tracegraph.special, tracegraph.linalg and tracegraph.sparse",
        "ShapeDtypeStruct": "use tracegraph.ArrayType(dtype, shape)",
        "make_jaxpr": "use tracegraph.make_program(f)(*args)",
        "local_devices": "use x.device, and tracegraph.features(device)",
        "default_backend": "use x.device, and tracegraph.features(device)",
        "associative_scan": "use numpy.cumsum, numpy.cumprod or the accumulate method of a ufunc, "
        "such as numpy.maximum.accumulate(x); tracegraph.scan for others, step by step",
        "pmap": "a call runs on one GPU; use tracegraph.vmap for many items",
        "shard_map": "a call runs on one GPU; use tracegraph.vmap for many items",
        "pjit": "a call runs on one GPU; use tracegraph.jit",
        "jacobian": "use tracegraph.jacrev or tracegraph.jacfwd",
        "remat": "use tracegraph.checkpoint",
        "custom_gradient": "use tracegraph.custom_vjp",
        "disable_jit": "call the function without tracegraph.jit: its NumPy code runs as it is",
        "config": "dtypes are NumPy's, float64 included; there are no global options",
        "io_callback": "use tracegraph.pure_callback, tracegraph.debug.callback or "
        "tracegraph.host_call",
        "dynamic_slice_in_dim": "use tracegraph.dynamic_slice, with a start for each axis",
        "select": "use numpy.where, or numpy.select",
        "compile": "use tracegraph.jit(f).lower(*args).compile()",
    },
    "tracegraph.tree": {
        "sum": f"use sum({_LEAVES})",
        "tree_map": "use tracegraph.tree.map",
        "tree_leaves": "use tracegraph.tree.leaves",
        "tree_flatten": "use tracegraph.tree.flatten",
        "tree_unflatten": "use tracegraph.tree.unflatten",
        "tree_structure": "use tracegraph.tree.structure",
        "tree_reduce": "use tracegraph.tree.reduce",
        "tree_all": "use tracegraph.tree.all",
        "tree_transpose": "use tracegraph.tree.transpose",
        "tree_map_with_path": "use tracegraph.tree.map_with_path",
        "tree_flatten_with_path": "use tracegraph.tree.flatten_with_path",
        "tree_leaves_with_path": "use tracegraph.tree.leaves_with_path",
        "keystr": "use tracegraph.tree.paths(structure, name), which has the expression of each "
        "leaf; a path is a tuple of keys, positions and names of fields",
        "reduce_associative": "use tracegraph.tree.reduce",
        "Partial": "close over arrays, or pass them; a function is no tree",
        "PyTreeDef": "use tracegraph.tree.Structure",
        "register_static": "use tracegraph.register_dataclass, with fields declared by "
        "dataclasses.field(metadata={'static': True})",
        "register_pytree_node": "use tracegraph.tree.register_class(cls, to_children, "
        "from_children)",
        "register_pytree_with_keys": "use tracegraph.tree.register_class(cls, to_children, "
        "from_children)",
        "register_pytree_node_class": "use tracegraph.register_dataclass of a dataclass",
    },
    "tracegraph.nn": {
        "initializers": "draw weights by tracegraph.random, such as "
        "tracegraph.random.normal(key, shape) / fan_in**0.5",
        "logmeanexp": "use tracegraph.nn.logsumexp(x, axis) - log(n)",
        "normalize": "use tracegraph.nn.standardize",
        "sparse_plus": "use numpy.where(x >= 1, x, numpy.maximum(x + 1, 0)**2 / 4)",
        "sparse_sigmoid": "use numpy.clip((x + 1) / 2, 0, 1)",
        "dot_product_attention": "use tracegraph.nn.softmax(q @ k.mT / d**0.5) @ v",
        "dropout": "use numpy.where(tracegraph.random.bernoulli(key, keep, x.shape), x / keep, 0)",
        "max_pool": "use numpy.max of numpy.lib.stride_tricks.sliding_window_view(x, window)",
        "avg_pool": "use numpy.mean of numpy.lib.stride_tricks.sliding_window_view(x, window)",
        "log1mexp": "use numpy.log1p(-numpy.exp(-x)), or numpy.log(-numpy.expm1(-x)) of small x",
    },
    "tracegraph.numpy": {
        "ndarray": "the class of arrays is tracegraph.Array",
        "float_": "use numpy.float64",
        "roots": "use numpy.roots outside, or tracegraph.pure_callback",
        "random": "use tracegraph.random",
    },
}

_KEYWORDS: Mapping[str, Mapping[str, str]] = {
    "while_loop": {"init_val": "init", "cond": "cond_fun", "body": "body_fun"},
    "fori_loop": {"init_val": "init", "body": "body_fun"},
    "scan": {"body": "f", "carry": "init", "_split_transpose": ""},
    "map": {
        "batch_size": "nothing: items are mapped one by one; for groups of items write "
        "tracegraph.map of tracegraph.vmap(f), with xs reshaped to (groups, size, ...)"
    },
    "cond": {"operand": "the operands, one after another, behind the functions", "operands": ""},
    "switch": {"operand": "the operands, one after another, behind the branches", "operands": ""},
    "jit": {
        "keep_unused": "nothing: arguments that are not used are never read",
        "inline": "nothing: a jitted function that is called in a traced one is part of it",
        "backend": "device=, 'host' or 'cuda'",
        "in_shardings": "nothing: a call runs on one GPU",
        "out_shardings": "nothing: a call runs on one GPU",
        "abstracted_axes": "nothing: a function is built for each shape",
    },
    "pure_callback": {
        "vectorized": "vmap_method=",
        "sharding": "nothing: a call runs on one GPU",
        "result_shape_dtypes": "the types as the second argument, tracegraph.ArrayType or arrays",
    },
}
"""By function, keywords of other libraries and what to pass instead."""


def missing_name(module: str, name: str) -> AttributeError:
    """The error of a name that a module does not have."""
    known = _NAMES.get(module, {}).get(name)
    message = f"module {module!r} has no attribute {name!r}"
    return AttributeError(message if known is None else f"{message}; {known}", name=name)


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
