"""SciPy's functions of float64, which are the references. The first call imports SciPy.

Where SciPy is wrong, the files named `…_values` mend it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@cache
def _scipy_special() -> ModuleType:
    return importlib.import_module("scipy.special")


def by_scipy(name: str) -> Callable[..., Array]:
    """The function of `scipy.special` that has a name."""

    def function(*operands: Array) -> Array:
        return np.asarray(getattr(_scipy_special(), name)(*operands))

    return function


def mended(found: Array, where: Array, values: Callable[..., Array], *operands: Array) -> Array:
    """Values of SciPy's, but where they are wrong, of `values` for the operands there."""
    if not where.any():
        return found
    found = np.array(found)
    found[where] = values(*(np.broadcast_to(x, found.shape)[where] for x in operands))
    return found


def horner(coefficients: Any, x: Any) -> Any:
    """A polynomial, the constant coefficient first."""
    found: Any = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        found = found * x + coefficient
    return found
