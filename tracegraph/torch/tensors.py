"""Calls with tensors: as arguments of jitted functions, and results as tensors, without a copy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np
import torch

from tracegraph import tree
from tracegraph.arrays.array import Array
from tracegraph.arrays.borrowed_memory import LEGACY_STREAM
from tracegraph.arrays.known_arrays import borrowed_tensor, current_torch_stream, torch_dtypes
from tracegraph.current_stream import Chosen, on_stream
from tracegraph.dtypes import bfloat16
from tracegraph.interop.flat_functions import FlatFunction
from tracegraph.ir.types import ArrayType
from tracegraph.modes import PLAIN, current_modes, process
from tracegraph.torch.prepared_calls import KnownTensorCall, prepare, run_prepared

DTYPES = torch_dtypes()
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

    On a GPU, it runs on PyTorch's current stream, and PyTorch allocates the results.
    """
    return run_tree(function, values)[0]


def run_tree(
    function: FlatFunction, values: Sequence[Any]
) -> tuple[tuple[torch.Tensor, ...], tree.Structure]:
    """The same for a function whose result is any tree: its leaves, and its structure."""
    device = function.device or device_of(values)
    if device == "host":
        return _as_tensors(function.on(device)(*map(as_argument, values)))
    where, values = _devices(device), list(map(_dense, values))
    handle = current_torch_stream(where.index)
    if handle or not process.is_plain or current_modes() is not PLAIN:
        found = None
    else:
        found = run_prepared(function, values, where)
    return found or _on_gpu(function, values, where, handle)


def _on_gpu(
    function: FlatFunction, values: Sequence[Any], where: torch.device, handle: int
) -> tuple[tuple[torch.Tensor, ...], tree.Structure]:
    jitted = function.on(f"cuda:{where.index}")
    with on_stream(_chosen(handle)):
        if torch.cuda.is_current_stream_capturing():
            return _as_tensors(jitted(*map(as_argument, values)))
        if process.is_plain:
            run = partial(_run_into, function, values, where)
            found = jitted.through(tuple(map(_borrowed, values)), run)
            if found is not None:
                return found
        return _as_tensors(jitted(*map(as_argument, values)))


def _dense(x: Any) -> Any:
    """A tensor as a contiguous one: PyTorch copies it on its stream, also into a capture."""
    return x.contiguous() if isinstance(x, torch.Tensor) and not x.is_contiguous() else x


def _as_tensors(result: Any) -> tuple[tuple[torch.Tensor, ...], tree.Structure]:
    leaves, structure = tree.flatten(result)
    return tuple(map(as_tensor, leaves)), structure


def device_of(values: Sequence[Any]) -> str:
    """The device of the tensors: ``"host"``, or that of the first that is on a GPU."""
    for x in values:
        if isinstance(x, torch.Tensor) and x.is_cuda:
            return f"cuda:{x.get_device()}"
    return "host"


@lru_cache(64)
def _chosen(handle: int) -> Chosen | None:
    """A stream of PyTorch, which never destroys those that it makes; None for the device's own.

    CUDA orders that with the legacy default stream, and launches on it need no events.
    """
    return None if handle in (0, LEGACY_STREAM) else Chosen(handle, None)


def _borrowed(x: Any) -> Any:
    """What a jitted function takes for a tensor on a GPU, for this call; a number is itself."""
    if not isinstance(x, torch.Tensor):
        return x
    if not x.is_cuda:
        return as_argument(x)
    borrowed = borrowed_tensor(x.resolve_conj().resolve_neg())
    return as_argument(x) if borrowed is None else borrowed


def _run_into(
    function: FlatFunction,
    values: Sequence[Any],
    device: torch.device,
    cached: Any,
    compiled: Any,
    leaves: Sequence[Any],
) -> tuple[tuple[torch.Tensor, ...], tree.Structure] | None:
    """Run with results in new tensors on a GPU; None if that is not possible."""
    executable, types = compiled.executable, compiled.out_types
    if not hasattr(executable, "launch_into") or not all(type_.size for type_ in types):
        return None
    results = [(type_.shape, TORCH_DTYPES[type_.dtype]) for type_ in types]
    tensors = tuple([torch.empty(s, dtype=dtype, device=device) for s, dtype in results])
    executable.launch_into(leaves, [x.data_ptr() for x in tensors])
    launch = executable.addressed()
    if launch is not None:
        prepare(function, values, device, KnownTensorCall(cached, compiled, launch, results))
    return tensors, compiled.out_structure


@cache
def _devices(name: str) -> torch.device:
    return torch.device("cuda", int(name.partition(":")[2] or 0))
