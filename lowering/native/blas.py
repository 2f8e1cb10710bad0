"""BLAS in this process: addresses of Fortran routines, with 64-bit or 32-bit integers.

NumPy's wheels bring OpenBLAS; SciPy has the routines of any BLAS that it was built with.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import numpy as np

from tracegraph.generated.dataclass import dataclass

FOLDERS = ("../numpy.libs", ".dylibs")
"""Where wheels have the libraries of NumPy, from its folder."""

PATTERNS = ("*openblas*.so*", "*openblas*.dylib", "*openblas*.dll")

NAMES = (("scipy_{}_64_", 8), ("{}_64_", 8), ("scipy_{}_", 4))
"""How libraries name a routine, and the bytes of its integers."""


@dataclass(frozen=True, slots=True)
class Routine:
    """A Fortran routine: all of its arguments are addresses."""

    address: int
    integer_bytes: int


@cache
def routine(name: str) -> Routine | None:
    """The routine of a name such as ``"dgemm"``; None if this process has none."""
    for library in _libraries():
        for pattern, size in NAMES:
            try:
                found = getattr(library, pattern.format(name))
            except AttributeError:
                continue
            address = ctypes.cast(found, ctypes.c_void_p).value
            if address:
                return Routine(address, size)
    return _of_scipy(name)


@cache
def _libraries() -> tuple[ctypes.CDLL, ...]:
    folder = Path(np.__file__).parent
    paths = [
        path
        for place in FOLDERS
        for pattern in PATTERNS
        for path in sorted((folder / place).resolve().glob(pattern))
    ]
    return tuple(ctypes.CDLL(str(path)) for path in paths)


def _of_scipy(name: str) -> Routine | None:
    try:
        from scipy.linalg import cython_blas
    except ImportError:
        return None
    capsule = cython_blas.__pyx_capi__.get(name)
    if capsule is None:
        return None
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype = ctypes.c_void_p
    pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = pointer_of(capsule, name_of(capsule))
    return Routine(address, 4) if address else None
