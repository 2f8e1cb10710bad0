"""Calls with tensors: as arguments of jitted functions, and results as tensors, without a copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from tracegraph.arrays.array import Array
from tracegraph.dtypes import bfloat16
from tracegraph.interop.flat_functions import FlatFunction
from tracegraph.ir.types import ArrayType
from tracegraph.streams import stream

DTYPES = {
    torch.bool: np.dtype(np.bool_),
    torch.uint8: np.dtype(np.uint8),
    torch.uint16: np.dtype(np.uint16),
    torch.uint32: np.dtype(np.uint32),
    torch.uint64: np.dtype(np.uint64),
    torch.int8: np.dtype(np.int8),
    torch.int16: np.dtype(np.int16),
    torch.int32: np.dtype(np.int32),
    torch.int64: np.dtype(np.int64),
    torch.float16: np.dtype(np.float16),
    torch.bfloat16: bfloat16,
    torch.float32: np.dtype(np.float32),
    torch.float64: np.dtype(np.float64),
    torch.complex64: np.dtype(np.complex64),
    torch.complex128: np.dtype(np.complex128),
}
"""The dtypes of tensors that arrays have, too."""

TORCH_DTYPES = {dtype: of_torch for of_torch, dtype in DTYPES.items()}


def type_of_tensor(x: torch.Tensor) -> ArrayType:
    """Dtype and shape of a tensor.

    Raises:
        TypeError: arrays cannot have its dtype.
    """
    dtype = DTYPES.get(x.dtype)
    if dtype is None:
        raise TypeError(f"arrays have no dtype {x.dtype}; convert the tensor")
    return ArrayType(dtype, tuple(x.shape))


def as_argument(x: Any) -> Any:
    """What a jitted function takes for a tensor: its memory. A number is itself.

    Conjugates and negatives that are not computed yet are computed.
    """
    if not isinstance(x, torch.Tensor):
        return x
    x = x.detach().resolve_conj().resolve_neg()
    if x.is_cuda:
        return x
    if x.dtype == torch.bfloat16:
        return x.view(torch.int16).numpy().view(bfloat16)
    return x.numpy()


def as_tensor(result: Array) -> torch.Tensor:
    """The tensor that takes over the memory of a result, which nobody else has."""
    data = result.data
    if not isinstance(data, np.ndarray):
        return torch.from_dlpack(result)
    data.setflags(write=True)  # results share memory with nothing
    if data.dtype == bfloat16:
        return torch.from_numpy(data.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(data)


def run(function: FlatFunction, values: Sequence[Any]) -> tuple[torch.Tensor, ...]:
    """The results for tensors and numbers, as one graph on their device.

    On a GPU, it runs on PyTorch's current stream.
    """
    device = function.device or device_of(values)
    arguments = map(as_argument, values)
    if device == "host":
        return tuple(map(as_tensor, function.on(device)(*arguments)))
    with stream(torch.cuda.current_stream(torch.device(device))):
        return tuple(map(as_tensor, function.on(device)(*arguments)))


def device_of(values: Sequence[Any]) -> str:
    """The device of the tensors: ``"host"``, or that of the first that is on a GPU."""
    for x in values:
        if isinstance(x, torch.Tensor) and x.is_cuda:
            return f"cuda:{x.device.index}"
    return "host"
