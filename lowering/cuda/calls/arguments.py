"""Binding: what a call passes, as device addresses; in place where possible, else copied once.

DeviceBuffer, DLPack, __cuda_array_interface__   used where they are, if contiguous and aligned
memory borrowed from another library             the same, and nothing is asked of the library
memory that the user has                         used where it is, if aligned
other device arrays                              packed into pooled memory by one kernel
Python scalars, NumPy scalars, ndarrays          by value if small, else copied to pooled memory
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np

from lowering.cuda.calls.producers import current_stream_of
from lowering.cuda.graph.copies import (
    COPY_THREADS,
    PACK_KERNEL,
    PACK_SOURCE,
    copy_grid,
    pack_values,
)
from lowering.cuda.graph.small_inputs import Values, ValueSlot
from lowering.cuda.interface import ForeignArray, Launch
from lowering.cuda.memory.owned_buffer import OwnedBuffer
from lowering.cuda.memory.pool import CudaBuffer, PooledMemory
from lowering.cuda.open_devices import OpenDevice
from lowering.cuda.streams.in_flight import InFlightLaunch, later
from lowering.cuda.streams.stream_state import StreamState
from tracegraph.arrays.borrowed_memory import LEGACY_STREAM, BorrowedMemory
from tracegraph.errors import CapturingStreamError
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.types import ArrayType, row_major_strides

_OTHER_STREAM = (
    "an argument comes from a stream that is being captured, and the call is on another one; make "
    "it inside `with tracegraph.stream(s):` of the captured one"
)
_DRAWN_IN = (
    f"{_OTHER_STREAM}, and end this capture without a result, since the library of the argument "
    "has made the other stream a part of it"
)

NUMBERS = frozenset({bool, int, float, complex})
"""Classes of Python numbers, which travel by value to inputs without axes."""


@dataclass(slots=True)
class Bound:
    """What the arguments of one call on a `stream` bring with them.

    `pending` is the last launch with loops that they wait for, and `cross_stream` are buffers of
    other streams. `temporaries` must stay until the launch is enqueued, `foreign` arrays of other
    libraries until it has run. `copies` are the bytes of each copy, and the input that it is for.
    `awaited` are the streams of other libraries that `stream` waits for.
    """

    stream: StreamState
    cross_stream: list[CudaBuffer] = field(default_factory=list)
    pending: InFlightLaunch | None = None
    temporaries: list[PooledMemory] = field(default_factory=list)
    foreign: list[Any] = field(default_factory=list)
    copies: tuple[tuple[Input, int], ...] = ()
    awaited: tuple[int, ...] = ()


class Input:
    """An input of a Plan, which is the one of a `function`.

    An array whose address is not a multiple of the `alignment` is copied. A small input has a slot
    at a fixed address, and words among the `values` that are passed.
    """

    __slots__ = (
        "_cell",
        "_cell_words",
        "_values",
        "address",
        "alignment",
        "device",
        "function",
        "last",
        "slot",
        "type",
    )

    def __init__(
        self,
        type_: ArrayType,
        device: OpenDevice,
        function: str,
        address: int | None = None,
        slot: ValueSlot | None = None,
        values: Values | None = None,
        alignment: int = 1,
    ) -> None:
        self.type = type_
        self.alignment = max(alignment, type_.dtype.itemsize)
        self.device = device
        self.function = function
        self.slot = slot
        if slot is None or address is None or values is None:
            return
        self.address = address
        self._values = values
        memory = np.zeros(slot.words, np.uint64)
        self._cell = np.ndarray(type_.shape, type_.dtype, memory)
        self._cell_words = memory.data
        self.last: Any = None  # the object that `write_number` wrote, unless `write` followed

    @property
    def takes_numbers(self) -> bool:
        """Whether a Python number goes by value."""
        return self.slot is not None and not self.type.shape

    def write_number(self, value: complex) -> None:
        """The same as `write` of a Python number; the object passed last is recognised."""
        if value is not self.last:
            self.write(value)
            self.last = value

    def write(self, value: Any) -> None:
        """Let launches pass this value, an array or a number."""
        assert self.slot is not None
        self.last = None
        self._cell[...] = value
        values = self._values
        words = values.words
        for position, word in enumerate(self._cell_words, self.slot.parameter):
            if words[position] != word:
                values.stale = True
                words[position] = word


def bind(argument: Any, wanted: Input, bound: Bound) -> int:
    """The address at which the graph reads `argument`.

    Raises:
        TypeError: the argument's dtype or shape is not that of the Plan's input.
        ValueError: the argument is on another device.
        StoppedError: the launch that it waits for was stopped.
    """
    type_, device = wanted.type, wanted.device
    if type(argument) in NUMBERS and wanted.takes_numbers:
        wanted.write_number(argument)
        return wanted.address
    if isinstance(argument, CudaBuffer):
        if argument.type is not type_:
            check_type(argument.type.dtype, argument.type.shape, type_)
        timeline, pending = bound.stream.timeline, argument.pending
        if argument.timeline is not timeline:
            check_device(argument.device, device)
            pending = argument.awaited_by(timeline)
            bound.cross_stream.append(argument)
        bound.pending = later(bound.pending, pending)
        return argument.pointer
    if type(argument) is BorrowedMemory:
        return _bind_borrowed(argument, wanted, bound)
    if isinstance(argument, OwnedBuffer):
        check_type(argument.type.dtype, argument.type.shape, type_)
        check_device(argument.device, device)
        argument.order(bound.stream.driver)
        if argument.pointer % wanted.alignment:
            return _aligned(argument, wanted, bound)
        bound.foreign.append(argument)
        return argument.pointer
    if not isinstance(argument, np.ndarray | np.generic | bool | int | float | complex):
        driver = bound.stream.driver
        producer = current_stream_of(argument)
        if producer is not None and driver.is_capturing(producer):
            raise CapturingStreamError(wanted.function, _OTHER_STREAM)
        foreign = driver.foreign(argument)
        if foreign is not None:
            if driver.is_capturing(driver.stream):  # since it waits for the producer's stream
                raise CapturingStreamError(wanted.function, _DRAWN_IN)
            return _bind_foreign(foreign, wanted, bound)
    array = host_array(argument, type_)
    if wanted.slot is not None:
        wanted.write(array)
        return wanted.address
    pooled = bound.stream.pool.take(array.nbytes)
    if array.nbytes:
        bound.stream.timeline.write(pooled.pointer, array)
    bound.temporaries.append(pooled)
    bound.copies += ((wanted, array.nbytes),)
    return pooled.pointer


def _aligned(array: OwnedBuffer, wanted: Input, bound: Bound) -> int:
    """The address of a copy."""
    stream, nbytes = bound.stream, array.type.nbytes
    pooled = stream.pool.take(nbytes)
    stream.driver.copy(pooled.pointer, array.pointer, nbytes)
    stream.timeline.hold(stream.driver.record(), array)  # even if the call fails
    bound.temporaries.append(pooled)
    bound.copies += ((wanted, nbytes),)
    return pooled.pointer


def _bind_borrowed(array: BorrowedMemory, wanted: Input, bound: Bound) -> int:
    driver, handle = bound.stream.driver, array.stream
    if array.type is not wanted.type:
        check_type(array.type.dtype, array.type.shape, wanted.type)
    check_device(array.device, wanted.device)
    in_order = handle == driver.stream or (handle == LEGACY_STREAM and driver.follows_legacy)
    if not in_order and handle is not None and handle not in bound.awaited:
        if driver.is_capturing(handle):
            raise CapturingStreamError(wanted.function, _OTHER_STREAM)
        driver.await_stream(handle)
        bound.awaited += (handle,)
    if array.strides is None and array.pointer % wanted.alignment == 0:
        if not in_order:  # the library may use the memory again while the launch runs
            bound.foreign.append(array.owner)
        return array.pointer
    return _bind_foreign(as_foreign(array), wanted, bound)


def as_foreign(array: BorrowedMemory) -> ForeignArray:
    """The same, as the driver describes arrays of other libraries."""
    type_, ordinal = array.type, int(array.device.removeprefix("cuda:"))
    strides = row_major_strides(type_.shape) if array.strides is None else array.strides
    return ForeignArray(array.pointer, type_.dtype, type_.shape, strides, ordinal, array.owner)


def _bind_foreign(array: ForeignArray, wanted: Input, bound: Bound) -> int:
    type_, device = wanted.type, wanted.device
    check_type(array.dtype, array.shape, type_)
    check_device(f"cuda:{array.device}", device)
    if is_row_major(array.shape, array.strides) and array.pointer % wanted.alignment == 0:
        bound.foreign.append(array.owner)
        return array.pointer
    pooled = bound.stream.pool.take(type_.nbytes)
    kernel = device.standalone_kernel(PACK_SOURCE, PACK_KERNEL)
    launch = Launch(kernel, copy_grid(type_.size), (COPY_THREADS, 1, 1))
    bound.stream.driver.launch_kernel(launch, pack_values(pooled.pointer, array))
    bound.stream.timeline.hold(bound.stream.driver.record(), array.owner)  # even if the call fails
    bound.temporaries.append(pooled)
    bound.copies += ((wanted, type_.nbytes),)
    return pooled.pointer


def host_array(argument: Any, type_: ArrayType) -> np.ndarray[Any, Any]:
    """`argument` as a contiguous host array of exactly the input's dtype and shape."""
    if isinstance(argument, bool | int | float | complex) and not isinstance(argument, np.generic):
        array = np.asarray(argument, type_.dtype)
    elif isinstance(argument, np.ndarray | np.generic) or not hasattr(argument, "__dlpack__"):
        array = np.asarray(argument)
    else:
        array = np.from_dlpack(argument)
    check_type(array.dtype, array.shape, type_)
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


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


def check_device(found: str, device: OpenDevice) -> None:
    """Raise ValueError unless a device is the one that the executable runs on."""
    if found != device.name:
        raise ValueError(
            f"an argument is on {found}, the executable runs on {device.name}; copy it there first"
        )
