"""Arrays of libraries that are known by their class: their elements in host memory, found fast.

DLPack, by which all others are read, takes ten times as long, and NumPy's reader has no bfloat16.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracegraph.dtypes import bfloat16


def in_host_memory(x: Any) -> NDArray[Any] | None:
    """The ndarray that shares memory with a tensor of PyTorch or an array of JAX; None for other
    objects, for arrays on a device, and for those that do not give their elements.
    """
    kind = type(x)
    read = _READERS.get((kind.__module__, kind.__name__))
    if read is None:
        return None
    try:
        return read(x)
    except (RuntimeError, TypeError, ValueError):  # DLPack says why, or can
        return None


def all_in_host_memory(values: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Values with ndarrays in the place of such arrays; None if there are none."""
    replaced = tuple([x if (known := in_host_memory(x)) is None else known for x in values])
    return None if all(map(_is, replaced, values)) else replaced


def _is(x: object, y: object) -> bool:
    return x is y


def _of_torch(x: Any) -> NDArray[Any] | None:
    if not x.is_cpu or x.requires_grad:
        return None
    if x.is_conj() or x.is_neg():  # computed where they are read
        x = x.resolve_conj().resolve_neg()
    torch = sys.modules["torch"]
    if x.dtype is torch.bfloat16:
        bits: NDArray[Any] = x.view(torch.int16).numpy().view(bfloat16)
        return bits
    found: NDArray[Any] = x.numpy()
    return found


def _of_jax(x: Any) -> NDArray[Any] | None:
    if x.platform() != "cpu" or not x.is_fully_addressable:
        return None
    return np.asarray(x)


_READERS: Mapping[tuple[str, str], Callable[[Any], NDArray[Any] | None]] = {
    ("torch", "Tensor"): _of_torch,
    ("jaxlib._jax", "ArrayImpl"): _of_jax,
}
"""By the module and the name of a class, so that nothing is imported here."""
