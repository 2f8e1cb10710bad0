"""Memory that the user has, as an ndarray that keeps the object which owns it."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from tracegraph.ir.types import ArrayType


def host_memory(address: int, type_: ArrayType, owner: Any) -> np.ndarray[Any, Any]:
    """A read-only array at an address; it cannot be made writable."""
    if not type_.nbytes:
        array = np.empty(type_.shape, type_.dtype)
        array.setflags(write=False)
        return array
    memory = (ctypes.c_uint8 * type_.nbytes).from_address(address)
    memory.owner = owner  # type: ignore[attr-defined]
    return np.frombuffer(memoryview(memory).toreadonly(), type_.dtype).reshape(type_.shape)
