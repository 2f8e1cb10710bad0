"""Functions that return Arrays also where no argument is one."""

from __future__ import annotations

from collections.abc import Iterable
from functools import wraps
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from tracegraph import numpy as tnp
from tracegraph.arrays.array import Array
from tracegraph.arrays.creation import asarray
from tracegraph.errors.tracebacks import entry_point


def functions_of(module: ModuleType, names: Iterable[str], namespace: str) -> dict[str, Any]:
    """What a module has under these names, its functions as functions of another module."""
    return {name: _of_arrays(getattr(module, name), namespace) for name in names}


def _of_arrays(function: Any, namespace: str) -> Any:
    """A function with the results of another, in which Arrays stand for arrays of NumPy.

    Dtypes, constants and objects such as `r_` are returned as they are.
    """
    if not isinstance(function, FunctionType):
        return function

    makes = function.__name__ in _MAKING

    @entry_point
    @wraps(function)
    def returning_arrays(*args: Any, **kwargs: Any) -> Any:
        found = as_arrays(function(*args, **kwargs))
        return found.local() if makes and type(found) is Array else found

    returning_arrays.__module__ = namespace
    returning_arrays.__qualname__ = function.__name__
    return returning_arrays


_MAKING = frozenset(
    {"arange", "empty", "empty_like", "eye", "full", "full_like", "identity", "linspace"}
    | {"ones", "ones_like", "tri", "zeros", "zeros_like"}
)
"""Functions whose results are new arrays also where they make Arrays themselves."""


def as_arrays(result: Any) -> Any:
    """A result of NumPy's, or a tuple or list of them, as Arrays; anything else as it is."""
    if isinstance(result, (np.ndarray, np.generic)):
        return asarray(result).local()  # a copy
    if isinstance(result, tuple) and hasattr(result, "_make"):
        return type(result)._make(map(as_arrays, result))
    if type(result) in (tuple, list):
        return type(result)(map(as_arrays, result))
    return result


def unique_values(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The distinct elements in ascending order, where NumPy's function promises none.

    While tracing, `size` is needed, as of `tracegraph.numpy.unique`. NaNs are distinct.

    Shape: one axis.
    Dtype: that of `x`.

    Raises:
        ShapeDependentError: `x` is traced, and there is no `size`.

    >>> import tracegraph.array_api as xp
    >>> xp.unique_values([2, 1, 2])
    Array([1, 2], dtype=int64)
    """
    if size is not None:
        return as_arrays(tnp.unique_values(x, size=size, fill_value=fill_value))
    return as_arrays(tnp.unique_counts(x).values)
