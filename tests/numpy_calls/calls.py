"""A call that was recorded, and the file that keeps the calls."""

from __future__ import annotations

import operator
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

DATA_KINDS = "biufc"
"""Kinds of dtypes that arrays of ours have."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function, of a method of a ufunc or an array, or of an operator.

    `target` is "numpy.sum", "numpy.add.reduce", "ndarray.sum" or "operator.add". `payload` is the
    pickle of its positional and keyword arguments, as they were before the call.
    """

    target: str
    payload: bytes
    test: str
    derived: bool = False

    @property
    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Fresh copies of the arguments."""
        args, kwargs = pickle.loads(self.payload)
        return args, kwargs

    @property
    def group(self) -> str:
        """What kind of call it is: "ufuncs", "methods of ufuncs", "operators", …."""
        head, _, name = self.target.partition(".")
        if head == "operator":
            return "indexing" if name in ("getitem", "setitem") else "operators"
        if head == "ndarray":
            return "methods of arrays"
        first, _, method = name.partition(".")
        if isinstance(getattr(np, first), np.ufunc):
            return "methods of ufuncs" if method else "ufuncs"
        return "functions"


@dataclass(frozen=True, slots=True)
class Recording:
    """All calls of the tests, and how many were left out, by the reason."""

    calls: Sequence[Call]
    left_out: Mapping[str, int]
    numpy_version: str

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(self))


def load(path: Path) -> Recording:
    found: Recording = pickle.loads(path.read_bytes())
    return found


@cache
def function_of(target: str) -> Any:
    """What a target names; for "ndarray.sum" a function that takes the array first."""
    head, _, name = target.partition(".")
    if head == "operator":
        return getattr(operator, name)
    if head == "ndarray":
        return operator.attrgetter(name)
    found: Any = np
    for part in name.split("."):
        found = getattr(found, part)
    return found


def apply(target: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call NumPy, or our protocols through NumPy if tracers are among the arguments."""
    function = function_of(target)
    if target.startswith("ndarray."):
        return function(args[0])(*args[1:], **kwargs)
    return function(*args, **kwargs)
