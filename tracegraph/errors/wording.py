"""Wording that messages share: how they name values, functions and source lines."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Protocol, cast

import numpy as np
from optree import PyTreeSpec

from tracegraph.dtypes import type_text
from tracegraph.user_source import line_text, user_source

__all__ = ["function_text", "structure_text", "value_text"]


class TypeLike(Protocol):
    """An `ArrayType`, as far as messages need it."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of each axis."""

    @property
    def weak(self) -> bool:
        """Whether it is the type of a Python number."""


class TracerLike(Protocol):
    """A traced value, as far as messages need it."""

    @property
    def type(self) -> TypeLike:
        """Its type."""

    @property
    def descent(self) -> str:
        """Where it comes from: an argument, or the line that computed it."""


def described(tracer: TracerLike) -> str:
    """Type and descent of a tracer: `a traced value of type f64[3] (argument x)`; or an Array."""
    descent = getattr(tracer, "descent", None)
    if descent is None:
        return f"an Array of type {tracer.type}"
    return f"a traced value of type {tracer.type} ({descent})"


def user_line() -> str:
    """Where the user's code was, as a last line of a message: `at solver.py:12, in step`."""
    source = user_source()
    return "" if source is None else f"\n  at {source}, in {source.function}"


def function_text(function: Callable[..., Any]) -> str:
    """A user's function in messages: `step (solver.py:12)`."""
    inner = inspect.unwrap(function)
    while isinstance(inner, functools.partial):
        inner = inspect.unwrap(inner.func)
    if isinstance(where := getattr(inner, "written_at", None), str):  # of a file of programs
        return where
    name = getattr(inner, "__qualname__", type(inner).__qualname__).rpartition("<locals>.")[2]
    code = getattr(inner, "__code__", None) or getattr(type(inner).__call__, "__code__", None)
    if code is None:
        return name
    return f"{name} ({line_text(code.co_filename, code.co_firstlineno)})"


def structure_text(structure: PyTreeSpec) -> str:
    """The structure of a pytree in messages: `{'v': (*, *)}`, `State(x=*, name='a')`."""
    text = str(structure).removeprefix("PyTreeSpec(")
    if "CustomTreeNode(" in text:  # the class's own text, with a star for each leaf
        return repr(structure.unflatten([_STAR] * structure.num_leaves))
    return text.rpartition(")")[0].removesuffix(", namespace='tracegraph'")


class _Star:
    def __repr__(self) -> str:
        return "*"


_STAR = _Star()
"""What stands for a leaf."""


def value_text(value: Any) -> str:
    """What a value is, in messages: `None`, `the function step (solver.py:12)`, its class."""
    if value is None:
        return "None"
    if isinstance(getattr(type(value), "descent", None), property):
        return described(cast(TracerLike, value))
    if isinstance(value, (np.ndarray, np.generic)):
        return f"an array of type {type_text(value.dtype, value.shape)}"
    if type(value) in (bool, int, float, complex, str) and len(repr(value)) <= 40:
        return f"{value!r} ({type(value).__module__}.{type(value).__qualname__})"
    if callable(value) and hasattr(value, "__name__"):
        return f"the function {function_text(value)}"
    return f"an instance of {type(value).__module__}.{type(value).__qualname__}"
