"""What the machine can do at best, measured beside the contestants.

"launch" is a CUDA graph of one kernel that does nothing; "copy" moves a block of memory that is
larger than the caches. Those of loops are in `hand_loops`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from lowering.plan.nests.rounding import ceil_div

from .row import Inputs, Results

COPY_BYTES = {"cuda": 1 << 29, "host": 1 << 26}
_BLOCK = 256


@dataclass(frozen=True)
class Limit:
    """What is timed as a contestant is; the work of a run is the row's unless it says otherwise.

    `results` reads what a run has computed, to be compared, where that is the row's work.
    """

    run: Callable[[], Any]
    wait: Callable[[Any], object]
    work: float | None = None
    results: Callable[[], Results] | None = None


_SOURCE = f"""
extern "C" __global__ void nothing() {{}}

template <int N> __global__ void copy(float4* __restrict__ to, const float4* __restrict__ from) {{
  size_t start = (size_t)blockIdx.x * {_BLOCK} * N + threadIdx.x;
  float4 held[N];
  #pragma unroll
  for (int i = 0; i < N; ++i) held[i] = from[start + i * {_BLOCK}];
  #pragma unroll
  for (int i = 0; i < N; ++i) to[start + i * {_BLOCK}] = held[i];
}}
"""
_COPIES = {n: f"copy<{n}>" for n in (4, 2, 1)}
"""Kernels by how many vectors a thread copies: the first is the fastest for much memory."""


def _launch(device: str, inputs: Inputs) -> Limit | None:
    if device == "host":
        return None
    from cuda.core import LaunchConfig
    from cuda.core.graph import GraphDefinition

    stream, code = stream_of_limits(), _kernels()
    definition = GraphDefinition()
    definition.launch(LaunchConfig(grid=1, block=32), code.get_kernel("nothing"))
    graph = definition.instantiate()
    graph.upload(stream)
    return Limit(lambda: graph.launch(stream), lambda _: stream.sync(), 1)


def _copy(device: str, inputs: Inputs) -> Limit:
    nbytes = COPY_BYTES[device]
    if device == "host":
        to, source = np.ones((2, nbytes // 4), np.float32)
        return Limit(lambda: np.copyto(to, source), id, 2 * nbytes)
    from cuda.core import Device, launch

    stream = stream_of_limits()
    target, origin = (Device(0).allocate(nbytes, stream=stream) for _ in range(2))
    config, kernel = copies(nbytes)[0]
    return Limit(
        lambda: launch(stream, config, kernel, target, origin),
        lambda _: stream.sync(),
        2 * nbytes,
    )


def copies(nbytes: int) -> list[tuple[Any, Any]]:
    """Launches and kernels (to, from) that copy so many bytes, rounded up to a multiple of 4 KiB.

    The one that is best for much memory comes first.
    """
    from cuda.core import LaunchConfig

    code = _kernels()
    vectors = ceil_div(nbytes, 16 * _BLOCK)
    return [
        (LaunchConfig(grid=vectors // n, block=_BLOCK), code.get_kernel(name))
        for n, name in _COPIES.items()
        if vectors % n == 0
    ]


@cache
def stream_of_limits() -> Any:
    """A stream for all of them; it makes the device current."""
    from cuda.core import Device, StreamOptions

    device = Device(0)
    device.set_current()
    return device.create_stream(options=StreamOptions(nonblocking=True))


@cache
def _kernels() -> Any:
    from cuda.core import Device, Program, ProgramOptions

    options = ProgramOptions(arch=f"sm_{Device(0).arch}")
    program = Program(_SOURCE, "c++", options=options)
    return program.compile("cubin", name_expressions=("nothing", *_COPIES.values()))


LIMITS: Mapping[str, Callable[[str, Inputs], Limit | None]] = {"launch": _launch, "copy": _copy}
"""By name; None where the device has no such limit."""
