"""The libraries that take part: how each takes arrays, waits for results, and gives them back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .elsewhere import Elsewhere


class Unavailable(Exception):
    """A library, or a way of using it, that this machine or device does not have."""


def _nothing(_: Any) -> None:
    """For libraries that compute at once, and need no preparation."""


@dataclass(frozen=True)
class Library:
    """One library, opened for a device.

    `put` makes an array of it from NumPy's, `wait` returns when a result is computed, `read` makes
    a NumPy array of one. `begin` is called before the row whose inputs it gets is prepared.
    Of a library in a process of its own, all but the name are that process's.
    """

    name: str
    version: str
    put: Callable[[np.ndarray], Any]
    wait: Callable[[Any], object]
    read: Callable[[Any], np.ndarray] = np.asarray
    begin: Callable[[tuple[Any, ...]], object] = _nothing
    elsewhere: Elsewhere | None = None

    def results(self, result: Any) -> tuple[np.ndarray, ...]:
        """All arrays of a result as NumPy's; they are waited for."""
        self.wait(result)
        return tuple(map(self.read, leaves(result)))


def leaves(result: Any) -> Iterator[Any]:
    """The arrays of a result, in order."""
    if isinstance(result, (tuple, list)):
        for part in result:
            yield from leaves(part)
    else:
        yield result


def _tracegraph(device: str) -> Library:
    # Rows leave the device to the default, as users do.
    os.environ["TRACEGRAPH_DEVICE"] = device
    on_host = device == "host"
    import tracegraph

    def wait(result: Any) -> None:
        # One launch computes all: to wait for one is to wait for all.
        while isinstance(result, (tuple, list)):
            if not result:
                return
            result = result[-1]
        result.synchronize()

    def put(x: np.ndarray) -> Any:
        return tracegraph.asarray(x, device=device)

    # On the host, a call returns when its results are there.
    return Library("tracegraph", tracegraph.__version__, put, _nothing if on_host else wait)


def _numpy(device: str) -> Library:
    return Library("numpy", np.__version__, np.asarray, _nothing)


def _jax(device: str) -> Library:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    os.environ["JAX_PLATFORMS"] = "cpu" if device == "host" else "cuda"
    import jax

    # Products of float32 are meant to be float32, as everywhere else, and not TF32.
    jax.config.update("jax_default_matmul_precision", "highest")

    def begin(inputs: tuple[Any, ...]) -> None:
        dtypes = {x.dtype.name for x in inputs if isinstance(x, np.ndarray)}
        wide = not dtypes.isdisjoint({"float64", "complex128"})
        jax.config.update("jax_enable_x64", wide)

    jax.devices()  # raises where there is no device of the platform
    return Library("jax", jax.__version__, jax.numpy.asarray, jax.block_until_ready, begin=begin)


COMMAND_BUFFERS = (
    "FUSION,CUBLAS,CUBLASLT,CUDNN,COLLECTIVES,CONDITIONAL,WHILE,CUSTOM_CALL,DYNAMIC_SLICE_FUSION",
    "FUSION,CUBLAS,CUBLASLT,CUDNN,COLLECTIVES,CONDITIONAL,WHILE",
    "FUSION,CUBLAS,CONDITIONAL,WHILE",
)
"""What XLA may put into CUDA graphs; a version that does not know a name ends the process."""

COMMAND_BUFFERS_FLAG = "--xla_gpu_enable_command_buffer"

SHORT_GRAPHS = "--xla_gpu_graph_min_graph_size=1"
"""Without it, loops of a few kernels are left to the host, at 22 us an iteration instead of 7."""


def _jax_with_command_buffers(device: str) -> Library:
    if device == "host":
        raise Unavailable("command buffers are for GPUs")
    for kinds in COMMAND_BUFFERS:
        flags = [os.environ.get("XLA_FLAGS", ""), SHORT_GRAPHS, f"{COMMAND_BUFFERS_FLAG}={kinds}"]
        try:
            process = Elsewhere("jax", device, {"XLA_FLAGS": " ".join(flags).strip()})
        except RuntimeError as error:
            failure = error
        else:
            version = f"{process.version} ({kinds})"
            return Library("jax-cb", version, _nothing, _nothing, elsewhere=process)
    raise failure


def _jax_on_one_core(device: str) -> Library:
    if device != "host" or not hasattr(os, "sched_getaffinity"):
        raise Unavailable("it is for the host of systems that bind processes to cores")
    process = Elsewhere("jax", device, {}, cores={max(os.sched_getaffinity(0))})
    return Library("jax-1", process.version, _nothing, _nothing, elsewhere=process)


def _torch(device: str) -> Library:
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise Unavailable("this build of torch finds no GPU")
    place = "cpu" if device == "host" else "cuda"

    def put(x: np.ndarray) -> Any:
        return torch.from_numpy(x).to(place)

    def wait(result: Any) -> None:
        if place == "cuda":
            torch.cuda.synchronize()

    def read(tensor: Any) -> np.ndarray:
        return tensor.numpy(force=True)

    def begin(inputs: tuple[Any, ...]) -> None:
        torch._dynamo.reset()  # else many shapes of one function end in its uncompiled form

    return Library("torch", torch.__version__, put, wait, read, begin)


def _cupy(device: str) -> Library:
    if device == "host":
        raise Unavailable("it runs on GPUs only")
    import cupy

    def wait(result: Any) -> None:
        cupy.cuda.runtime.deviceSynchronize()

    return Library("cupy", cupy.__version__, cupy.asarray, wait, cupy.asnumpy)


def _warp(device: str) -> Library:
    import warp

    warp.config.quiet = True
    warp.init()
    place = "cpu" if device == "host" else "cuda:0"
    warp.set_device(place)

    def wait(result: Any) -> None:
        warp.synchronize_device(place)

    return Library("warp", warp.__version__, warp.array, wait, warp.array.numpy)


OPENERS: Mapping[str, Callable[[str], Library]] = {
    "tracegraph": _tracegraph,
    "numpy": _numpy,
    "jax": _jax,
    "jax-cb": _jax_with_command_buffers,
    "jax-1": _jax_on_one_core,
    "torch": _torch,
    "cupy": _cupy,
    "warp": _warp,
}

PEERS = {"cuda": ("jax", "jax-cb", "torch", "cupy", "warp"), "host": ("numpy", "jax", "torch")}
"""Whom tracegraph is compared with unless told otherwise."""


def library_of(label: str) -> str:
    """The library of a contestant: ``"torch graph"`` is torch's."""
    return label.split()[0]
