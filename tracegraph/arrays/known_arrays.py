"""Arrays of libraries that are known by their class: their elements, found fast.

DLPack, by which all others are read, takes ten times as long in host memory, where NumPy's reader
has no bfloat16, and thirty times as long on a device, where each array also records an event.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracegraph import tree
from tracegraph.arrays.array import Array, Placement, placement
from tracegraph.arrays.borrowed_memory import BorrowedMemory
from tracegraph.dtypes import bfloat16
from tracegraph.errors import EndlessTreeError
from tracegraph.ir.types import ArrayType

Read = Callable[[Any], Any]


def in_host_memory(x: Any) -> NDArray[Any] | None:
    """The ndarray that shares memory with a tensor of PyTorch or an array of JAX; None for other
    objects, for arrays on a device, and for those that do not give their elements.
    """
    found = _read(x)
    return found if type(found) is np.ndarray else None


def replaced(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """The arguments of a call with such arrays replaced; None if there are none.

    In place of those in host memory are ndarrays. In place of tensors of PyTorch and arrays of
    CuPy, Numba and JAX on a GPU are Arrays of `BorrowedMemory`, which are valid for this call.
    """
    if not kwargs and not any(map(_containers, map(type, args))):
        found = tuple([x if (known := _read(x)) is None else known for x in args])
        return None if all(map(_is, found, args)) else (found, kwargs)
    try:
        leaves, structure = tree.flatten((args, kwargs))
    except (EndlessTreeError, RecursionError):
        return None  # what binds the arguments says which one it is
    known = [x if (known := _read(x)) is None else known for x in leaves]
    if all(map(_is, known, leaves)):
        return None
    args, kwargs = tree.unflatten(structure, known)
    return args, kwargs


def _is(x: object, y: object) -> bool:
    return x is y


_containers = frozenset({tuple, list, dict}).__contains__


def _read(x: Any) -> Any:
    kind: Any = type(x)
    read = _reader_of(kind)
    if read is None:
        return None
    try:
        return read(x)
    except (RuntimeError, TypeError, ValueError, AttributeError):  # DLPack says why, or can
        return None


@lru_cache(256)
def _reader_of(kind: Any) -> Read | None:
    return _READERS.get((kind.__module__, kind.__name__))


def borrowed(
    pointer: int,
    dtype: Any,
    shape: tuple[int, ...],
    ordinal: int,
    stream: int | None,
    owner: Any,
    strides: tuple[int, ...] | None,
) -> Array:
    """An Array of a GPU's memory, borrowed from another library for a call: `BorrowedMemory`."""
    type_, where = _placed(dtype, shape, ordinal)
    memory: Any = BorrowedMemory(pointer, type_, where[3], stream, owner, strides)
    return Array.placed(memory, type_, where)


@lru_cache(4096)
def _placed(dtype: Any, shape: tuple[int, ...], ordinal: int) -> tuple[ArrayType, Placement]:
    type_ = ArrayType(np.dtype(dtype), tuple(shape))
    return type_, placement(type_, f"cuda:{ordinal}")


def _of_torch(x: Any) -> Any:
    if x.requires_grad:
        return None
    if x.is_conj() or x.is_neg():  # computed where they are read
        x = x.resolve_conj().resolve_neg()
    if x.is_cuda:
        return borrowed_tensor(x)
    if not x.is_cpu:
        return None
    torch = sys.modules["torch"]
    if x.dtype is torch.bfloat16:
        bits: NDArray[Any] = x.view(torch.int16).numpy().view(bfloat16)
        return bits
    found: NDArray[Any] = x.numpy()
    return found


def borrowed_tensor(x: Any) -> Array | None:
    """The memory of a tensor of PyTorch on a GPU; None if arrays cannot have its dtype.

    It has no conjugate or negative view, and gradients are not asked for.

    Raises:
        RuntimeError: the tensor has no memory of its own, as a sparse one.
    """
    dtype = torch_dtypes().get(x.dtype)
    if dtype is None:
        return None
    ordinal = x.get_device()
    strides = None if x.is_contiguous() else x.stride()
    stream = _torch_stream()(ordinal)
    return borrowed(x.data_ptr(), dtype, x.shape, ordinal, stream, x, strides)


@cache
def torch_dtypes() -> Mapping[Any, np.dtype[Any]]:
    """The dtypes of tensors that arrays have, too; PyTorch gives them NumPy's names."""
    torch = sys.modules["torch"]
    names = ["bool", "float16", "float32", "float64", "complex64", "complex128"]
    names += [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
    there = {getattr(torch, n): np.dtype(n) for n in names if hasattr(torch, n)}
    return {torch.bfloat16: bfloat16, **there}


def current_torch_stream(ordinal: int) -> int:
    """The handle of PyTorch's current stream of a GPU; 0 for the legacy default stream."""
    return _torch_stream()(ordinal)


@cache
def _torch_stream() -> Callable[[int], int]:
    torch = sys.modules["torch"]
    fast: Callable[[int], int] | None = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return fast or (lambda ordinal: torch.cuda.current_stream(ordinal).cuda_stream)


def _of_cupy(x: Any) -> Array | None:
    itemsize, handle = x.itemsize, sys.modules["cupy"].cuda.get_current_stream().ptr
    strides = None if x.flags.c_contiguous else tuple([s // itemsize for s in x.strides])
    return borrowed(x.data.ptr, x.dtype, x.shape, x.data.device_id, handle, x, strides)


def _of_numba(x: Any) -> Array:
    described = x.__cuda_array_interface__
    return _described(described, x.gpu_data.context.device.id, described.get("stream"), x)


def _of_jax(x: Any) -> Any:
    if not x.is_fully_addressable:
        return None
    if x.platform() == "cpu":
        return np.asarray(x)
    if not x.is_ready():  # only DLPack lets a stream wait for it
        return None
    return _described(x.__cuda_array_interface__, x.device.local_hardware_id, None, x)


def _described(described: Any, ordinal: int, stream: int | None, owner: Any) -> Array:
    """An array that `__cuda_array_interface__` describes."""
    dtype, strides = np.dtype(described["typestr"]), described.get("strides")
    if strides is not None:
        strides = tuple([stride // dtype.itemsize for stride in strides])
    return borrowed(
        described["data"][0], dtype, described["shape"], ordinal, stream, owner, strides
    )


_READERS: Mapping[tuple[str, str], Read] = {
    ("torch", "Tensor"): _of_torch,
    ("torch.nn.parameter", "Parameter"): _of_torch,
    ("cupy", "ndarray"): _of_cupy,
    ("numba.cuda.cudadrv.devicearray", "DeviceNDArray"): _of_numba,
    ("jaxlib._jax", "ArrayImpl"): _of_jax,
}
"""By the module and the name of a class, so that nothing is imported here."""
