"""What a call passes, as device addresses: in place where possible, else copied once.

DeviceBuffer, DLPack, __cuda_array_interface__   used where they are, if contiguous and aligned
other device arrays                              packed into pooled memory by one kernel
Python scalars, NumPy scalars, ndarrays          by value if small, else copied to pooled memory
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lowering.cuda.copies import (
    COPY_THREADS,
    PACK_KERNEL,
    PACK_SOURCE,
    copy_grid,
    pack_values,
)
from lowering.cuda.device import OpenDevice
from lowering.cuda.interface import ForeignArray, Launch, Words
from lowering.cuda.memory import CudaBuffer, Lease
from lowering.cuda.values import WORD, ValueSlot
from tracegraph.types import ArrayType


@dataclass(slots=True)
class Bound:
    """What one call binds besides buffers of the pool.

    `leases` must stay until the launch is enqueued, `foreign` arrays of other libraries until it
    has run. `new_values` says whether a value passed by value is another than before.
    """

    leases: list[Lease] = field(default_factory=list)
    foreign: list[Any] = field(default_factory=list)
    bytes_copied: int = 0
    new_values: bool = False


def bind(
    argument: Any,
    type_: ArrayType,
    slot: tuple[ValueSlot, int] | None,
    words: Words | None,
    device: OpenDevice,
    bound: Bound,
) -> int:
    """The address at which the graph reads `argument`.

    A small input has a `slot` with its address; its host value goes into `words`, the parameters
    of the load kernel.

    Raises:
        TypeError: the argument's dtype or shape is not that of the Plan's input.
        ValueError: the argument is on another device.
    """
    if isinstance(argument, CudaBuffer):
        check_type(argument.type.dtype, argument.type.shape, type_)
        _check_device(argument.device, device)
        return argument.pointer
    if not isinstance(argument, np.ndarray | np.generic | bool | int | float | complex):
        foreign = device.driver.foreign(argument)
        if foreign is not None:
            return _bind_foreign(foreign, type_, device, bound)
    array = _host_array(argument, type_)
    if slot is not None and words is not None:
        value, address = slot
        bound.new_values |= _write_words(words, value, array)
        return address
    lease = device.pool.take(array.nbytes)
    if array.nbytes:
        device.timeline.write(lease.pointer, array)
    bound.leases.append(lease)
    bound.bytes_copied += array.nbytes
    return lease.pointer


def _bind_foreign(array: ForeignArray, type_: ArrayType, device: OpenDevice, bound: Bound) -> int:
    check_type(array.dtype, array.shape, type_)
    _check_device(f"cuda:{array.device}", device)
    bound.foreign.append(array.owner)
    if is_row_major(array.shape, array.strides) and array.pointer % type_.dtype.itemsize == 0:
        return array.pointer
    lease = device.pool.take(type_.nbytes)
    kernel = device.standalone_kernel(PACK_SOURCE, PACK_KERNEL)
    launch = Launch(kernel, copy_grid(type_.size), (COPY_THREADS, 1, 1))
    device.driver.launch_kernel(launch, pack_values(lease.pointer, array))
    bound.leases.append(lease)
    bound.bytes_copied += type_.nbytes
    return lease.pointer


def _host_array(argument: Any, type_: ArrayType) -> np.ndarray[Any, Any]:
    """`argument` as a contiguous host array of exactly the input's dtype and shape."""
    if isinstance(argument, bool | int | float | complex) and not isinstance(argument, np.generic):
        array = np.asarray(argument, type_.dtype)
    elif isinstance(argument, np.ndarray | np.generic) or not hasattr(argument, "__dlpack__"):
        array = np.asarray(argument)
    else:
        array = np.from_dlpack(argument)
    check_type(array.dtype, array.shape, type_)
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def _write_words(words: Words, slot: ValueSlot, array: np.ndarray[Any, Any]) -> bool:
    """Write a value into the parameters of the load kernel; whether it was another one before."""
    raw = array.tobytes()
    changed = False
    for number in range(slot.words):
        word = int.from_bytes(raw[number * WORD : (number + 1) * WORD], "little")
        if words[slot.parameter + number] != word:
            words[slot.parameter + number] = word
            changed = True
    return changed


def is_row_major(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether strides, in elements, are those of a contiguous row-major array.

    The stride of an axis of extent 1 does not matter, nor do any in an empty array.

    >>> is_row_major((2, 3), (3, 1)), is_row_major((2, 3), (1, 2)), is_row_major((1, 3), (9, 1))
    (True, False, True)
    """
    if 0 in shape:
        return True
    expected = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent > 1 and stride != expected:
            return False
        expected *= extent
    return True


def check_type(dtype: np.dtype[Any], shape: tuple[int, ...], type_: ArrayType) -> None:
    """Raise TypeError unless dtype and shape are the type's."""
    if dtype != type_.dtype or shape != type_.shape:
        raise TypeError(
            f"the executable takes {type_.strong()} here, got an array of dtype {dtype} and shape "
            f"{shape}; compile for these types, or convert the argument"
        )


def _check_device(found: str, device: OpenDevice) -> None:
    if found != device.name:
        raise ValueError(
            f"an argument is on {found}, the executable runs on {device.name}; copy it there first"
        )
