"""SciPy's compiled function in place of one that is made of NumPy calls, if SciPy is installed."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache, wraps
from types import ModuleType
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Function = Callable[..., Array]


@cache
def scipy_special() -> ModuleType | None:
    """`scipy.special`, or None. It is imported when a special function is first evaluated."""
    try:
        return importlib.import_module("scipy.special")
    except ImportError:
        return None


def scipy_if_there(name: str) -> Callable[[Function], Function]:
    """Let SciPy's function of a name compute, where it can be imported; `__wrapped__` is ours."""

    def choose(own: Function) -> Function:
        @wraps(own)
        def function(*operands: Array) -> Array:
            scipy = scipy_special()
            if scipy is None:
                return own(*operands)
            return np.asarray(getattr(scipy, name)(*operands))

        return function

    return choose
