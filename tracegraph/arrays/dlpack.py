"""DLPack: exchange of array memory with other libraries, without a copy.

Host memory goes through NumPy's exporter, but for bfloat16, which that lacks. For this and for
device memory the capsule is made here: a `DLManagedTensor` whose deleter drops the reference that
keeps the memory alive.
"""

from __future__ import annotations

import atexit
import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracegraph.arrays.device_buffer import DeviceBuffer
from tracegraph.dtypes import bfloat16
from tracegraph.ir.types import ArrayType

HOST = (1, 0)  # kDLCPU
_CUDA = 2  # kDLCUDA

_LEGACY_STREAM = 1  # CU_STREAM_LEGACY

# DLDataTypeCode, by NumPy's kind; bfloat16, of kind "V", has a code of its own.
_TYPE_CODES = {"i": 0, "u": 1, "f": 2, "V": 4, "c": 5, "b": 6}


class _Tensor(ctypes.Structure):
    """`DLTensor` of dlpack.h."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("type_code", ctypes.c_uint8),
        ("type_bits", ctypes.c_uint8),
        ("type_lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _ManagedTensor(ctypes.Structure):
    """`DLManagedTensor` of dlpack.h."""


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_ManagedTensor))
_ManagedTensor._fields_ = (
    ("tensor", _Tensor),
    ("manager_context", ctypes.c_void_p),
    ("deleter", _Deleter),
)

# What each exported tensor needs until its deleter runs: the memory's owner, the C structures, and
# the address of its capsule.
_exported: dict[int, tuple[Any, ...]] = {}

# The addresses of capsules that may exist, and of their tensors. A dict, since one operation on it
# is atomic.
_capsules: dict[int, int] = {}


def _delete(managed: Any) -> None:
    address = ctypes.addressof(managed.contents)
    *_, capsule = _exported.pop(address, (0,))
    if _capsules.get(capsule) == address:  # JAX takes away the destructor of a capsule
        _capsules.pop(capsule, None)


_deleter = _Deleter(_delete)


_CapsuleDestructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_capsule_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_capsule_is_valid.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
_capsule_is_valid.restype = ctypes.c_int
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
_capsule_pointer.restype = ctypes.c_void_p
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, _CapsuleDestructor)
_new_capsule.restype = ctypes.py_object
_set_destructor = ctypes.pythonapi.PyCapsule_SetDestructor
_set_destructor.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
_set_destructor.restype = ctypes.c_int

_NAME = b"dltensor"
_USED_NAME = b"used_dltensor"


def _drop(capsule: int) -> None:
    """Free the memory of a capsule that no consumer has taken.

    A consumer renames the capsule, and calls the deleter itself.
    """
    _capsules.pop(capsule, None)
    if _capsule_is_valid(capsule, _NAME):
        _exported.pop(_capsule_pointer(capsule, _NAME), None)


_capsule_destructor = _CapsuleDestructor(_drop)


@atexit.register
def _detach() -> None:
    """Capsules and tensors that outlive the interpreter must call no Python."""
    for capsule in list(_capsules):
        if any(_capsule_is_valid(capsule, name) for name in (_NAME, _USED_NAME)):
            _set_destructor(capsule, None)
    for _, _, managed, _ in list(_exported.values()):
        managed.deleter = _Deleter()  # null: there is nothing to call


def device_of(device: str) -> tuple[int, int]:
    """DLPack's (type, number) of a device such as ``"host"`` or ``"cuda:0"``.

    Raises:
        BufferError: DLPack does not know the kind of device.
    """
    kind, _, number = device.partition(":")
    if kind == "host":
        return HOST
    if kind == "cuda":
        return _CUDA, int(number or 0)
    raise BufferError(f"arrays on {device} cannot be exported by DLPack; copy to the host first")


def export_host(
    data: NDArray[Any],
    *,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> Any:
    """A capsule of an ndarray. Unless it is copied, its memory is read-only from then on: others
    have it.

    DLPack before 1.0 has no flag for read-only memory, so such a consumer gets a copy. So does each
    consumer of bfloat16, which NumPy does not export.
    """
    if data.dtype == bfloat16:
        if copy is not None and not copy:
            raise BufferError("an Array of bfloat16 in host memory is exported as a copy only")
        copied = data.copy()
        return _capsule(copied, copied.ctypes.data, ArrayType(data.dtype, data.shape), HOST)
    has_read_only_flag = max_version is not None and max_version >= (1, 0)
    if not has_read_only_flag and copy is None:
        data = data.copy()
    elif not copy:
        for each in (data, data.base):
            if isinstance(each, np.ndarray):
                each.setflags(write=False)
    return data.__dlpack__(max_version=max_version, dl_device=dl_device, copy=copy)


def export_device(
    buffer: DeviceBuffer, *, stream: Any, dl_device: tuple[int, int] | None, copy: bool | None
) -> Any:
    """A capsule of device memory. The consumer's stream waits for the work that produces it.

    `stream` is the handle of that stream: None is the legacy default stream, and -1 asks for no
    ordering. Other streams of the consumer are its own to order, also when it gives the memory up.

    Raises:
        BufferError: another device or a copy was asked for.
        TypeError: `stream` is not a number.
        ValueError: `stream` is 0, which DLPack rules out, or below -1.
        StoppedError: the program that computes the elements was stopped.
    """
    device = device_of(buffer.device)
    if copy or (dl_device is not None and dl_device != device):
        raise BufferError(
            f"an Array on {buffer.device} is exported in place only; copy it with to_device, or in "
            "the library that takes it"
        )
    consumer = consumer_stream(stream)
    if consumer is not None:
        buffer.hand_over(consumer)
    return _capsule(buffer, buffer.pointer, buffer.type, device)


def _capsule(owner: Any, pointer: int, type_: ArrayType, device: tuple[int, int]) -> Any:
    """A capsule of row-major elements, which keeps their owner alive."""
    shape = (ctypes.c_int64 * type_.ndim)(*type_.shape)
    tensor = _Tensor(
        data=pointer if type_.size else None,
        device_type=device[0],
        device_id=device[1],
        ndim=type_.ndim,
        type_code=_TYPE_CODES[type_.dtype.kind],
        type_bits=8 * type_.dtype.itemsize,
        type_lanes=1,
        shape=shape,
        strides=None,  # row-major
        byte_offset=0,
    )
    managed = _ManagedTensor(tensor=tensor, manager_context=None, deleter=_deleter)
    address = ctypes.addressof(managed)
    capsule = _new_capsule(address, _NAME, _capsule_destructor)
    _exported[address] = (owner, shape, managed, id(capsule))
    _capsules[id(capsule)] = address
    return capsule


def consumer_stream(stream: Any) -> int | None:
    """The handle of the stream that a DLPack consumer gives; None if it wants no ordering.

    Raises:
        TypeError: not a number.
        ValueError: 0, which DLPack rules out as ambiguous, or a negative number other than -1.
    """
    if stream is None:
        return _LEGACY_STREAM
    if not isinstance(stream, int) or isinstance(stream, bool):
        raise TypeError(
            f"__dlpack__: stream must be the handle of a stream, got {type(stream).__qualname__}"
        )
    if stream == -1:
        return None
    if stream < 1:
        raise ValueError(
            f"__dlpack__: stream must not be {stream}: pass 1 for the legacy default stream, 2 for "
            "the per-thread one, -1 for no ordering, or the handle of a stream"
        )
    return stream


def import_host(x: Any) -> NDArray[Any] | None:
    """The ndarray that shares memory with an exporter, or None if that is not in host memory."""
    kind, _ = x.__dlpack_device__()
    pinned = 3  # kDLCUDAHost
    return np.from_dlpack(x) if kind in (HOST[0], pinned) else None
