"""Arrays of memory that the user has: an address, a type, and the object that keeps it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.arrays.array import Array
from tracegraph.devices import canonical_device
from tracegraph.errors import RawMemoryError
from tracegraph.ir.types import ArrayType
from tracegraph.staging.compiler import compiler, default_device

__all__ = ["owned"]

_ADDRESSES = 1 << 64


def owned(
    address: int,
    type_or_nbytes: ArrayType | int,
    /,
    *,
    owner: Any,
    device: str | None = None,
    stream: int | None = None,
) -> Array:
    """An Array of memory at an address, without a copy; `owner` lives as long as it is needed.

    The Array holds the owner. So does each launch that reads the memory until it has run, and each
    exported graph with the Array among its arguments as long as that, or anything made of it,
    lives. What the memory contains when a launch runs is what it reads: its owner may write to it
    between launches. It is never written to: if it is donated, a copy is overwritten.

    Args:
        address: where the first element is, a multiple of the dtype's size.
        type_or_nbytes: an `ArrayType`; or a number of bytes, which are an array of uint8. Elements
            are contiguous and row-major.
        owner: what keeps the memory, such as the object that frees it when it is collected. A
            Buffer of cuda.core may be closed meanwhile: its allocation stays.
        device: where the memory is: ``"host"``, ``"cuda"`` or ``"cuda:1"``; without it, the device
            that functions run on.
        stream: the handle of the CUDA stream that writes the memory; each use waits for what is on
            it by then. Without it, the memory is ready, or written on the legacy default stream,
            which tracegraph's own stream is ordered with.

    Raises:
        RawMemoryError: the address is null, negative, misaligned, too large, or not in memory of
            the device; the number of bytes is negative; there is no owner, or it is closed.
        TypeError: the address or the type is of another class.
        ValueError: there is no such device, or the stream is of another one.

    >>> import numpy as np
    >>> table = np.arange(3.0)
    >>> shared = owned(table.ctypes.data, ArrayType("float64", (3,)), owner=table, device="host")
    >>> table[0] = 7
    >>> shared
    Array([7., 1., 2.], dtype=float64)
    """
    if isinstance(address, bool) or not isinstance(address, int):
        raise TypeError(f"an address is an int, got {type(address).__qualname__}")
    type_ = _type_of(type_or_nbytes)
    _require_address(address, type_)
    if owner is None:
        raise RawMemoryError(
            f"the {type_.nbytes:,} bytes at {address:#x} have no owner: pass as owner the object "
            "that frees them when it is collected"
        )
    chosen = default_device() if device is None else canonical_device(device)
    if stream is not None and chosen == "host":
        raise ValueError("memory of the host is on no stream: pass stream=None")
    return Array(compiler().backend(chosen).owned(address, type_, owner, stream))


def _type_of(given: ArrayType | int) -> ArrayType:
    if isinstance(given, ArrayType):
        return given.strong()
    if isinstance(given, bool) or not isinstance(given, int):
        raise TypeError(
            f"raw memory is an ArrayType or a number of bytes, got {type(given).__qualname__}"
        )
    if given < 0:
        raise RawMemoryError(f"raw memory of {given} bytes: the number must not be negative")
    return ArrayType(np.dtype("uint8"), (given,))


def _require_address(address: int, type_: ArrayType) -> None:
    if address < 0:
        raise RawMemoryError(f"the address {address} of an array of type {type_} is negative")
    if address + type_.nbytes > _ADDRESSES:
        raise RawMemoryError(
            f"an array of type {type_}, {type_.nbytes:,} bytes, at {address:#x} ends behind the "
            "last address of 64 bits"
        )
    if type_.nbytes == 0:
        return
    if address == 0:
        raise RawMemoryError(
            f"an array of type {type_}, {type_.nbytes:,} bytes, has the null address; check that "
            "what allocated it has succeeded"
        )
    size = type_.dtype.itemsize
    if address % size:
        raise RawMemoryError(
            f"the address {address:#x} of an array of type {type_} is {address % size} bytes "
            f"behind a multiple of {size}, to which elements of {type_.dtype} have to be aligned"
        )
