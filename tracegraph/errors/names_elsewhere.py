"""Names that other libraries have for what is here under another name: what an error says.

Users of JAX type `lax.fori_loop`, `init_val=` or `keep_unused=`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    },
    "pure_callback": {
        "vectorized": "vmap_method=",
        "sharding": "nothing: a call runs on one GPU",
        "result_shape_dtypes": "the types as the second argument, tracegraph.ArrayType or arrays",
    },
}
"""By function, keywords of other libraries and what to pass instead."""

_LOWERED = "lower(*args)"
_COMPILED = "lower(*args).compile()"
_STAGES: Mapping[str, str] = {
    "program": "trace(*args).program",
    **{name: f"{_LOWERED}.{name}" for name in ("plan", "nodes", "edges", "source")},
    **{name: f"{_LOWERED}.{name}()" for name in ("explain", "dot", "compile")},
    "graph": f"{_COMPILED}.graph",
    "memory": f"{_COMPILED}.memory",
    "profile": f"{_COMPILED}.profile(*args)",
    "export_graph": f"{_COMPILED}.export_graph(*args)",
    "export": "tracegraph.export(f, *args)",
}
"""What a stage of a jitted function has, and not the function: how to get it."""


def missing_of_jitted(function: str, name: str) -> AttributeError:
    """The error of an attribute that a jitted function does not have."""
    message = f"the jitted function {function} has no attribute {name!r}"
    known = _STAGES.get(name)
    if known is None:
        return AttributeError(message, name=name)
    owner = function if function.isidentifier() else "f"
    written = known if known.startswith("tracegraph") else f"{owner}.{known}"
    return AttributeError(f"{message}; it depends on types of arguments: {written}", name=name)


def missing_name(module: str, name: str) -> AttributeError:
    """The error of a name that a module does not have."""
    message = f"module {module!r} has no attribute {name!r}"
    known = None if name.startswith("_") else _advice(module, name)
    return AttributeError(message if known is None else f"{message}; {known}", name=name)


def _advice(module: str, name: str) -> str | None:
    from tracegraph.errors.names_of_jax import NAMES  # nobody needs it without a mistake

    known = NAMES.get(module, {}).get(name)
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
