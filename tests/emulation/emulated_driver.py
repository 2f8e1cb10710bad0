"""A driver whose memory is the host's and whose kernels run on the CPU.

So whole executables run without a GPU: arguments are bound, graphs updated and launched as on one.
Graphs must be without conditional nodes, whose loops the host drives, and without library calls but
matrix products, which `emulated_cublas` makes, and Fourier transforms, of `emulated_cufft`.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import tracegraph
from lowering.cuda.interface import Launch
from lowering.cuda.libraries.cublas import Cublas
from lowering.cuda.libraries.cufft import Cufft
from lowering.testing.recorded_objects import RecordedExecutable, RecordedGraph, RecordedNode
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.emulation.emulated_cublas import cublas
from tests.emulation.emulated_cufft import EmulatedCufft
from tests.emulation.emulator import (
    ARGUMENT,
    FILL,
    MOST_BLOCKS,
    SHIM,
    for_host,
    host_library,
    kernel_wrapper,
)

STORED_SHIM = SHIM.replace("conditions[handle] = value;", "*(unsigned*)handle = value;")
"""Conditions are stored at the address that is their handle."""

GRID = """
extern "C" index3 blockDim;
index3 blockDim;
struct uint4 { unsigned x, y, z, w; };
"""


@dataclass(slots=True, eq=False, weakref_slot=True)
class EmulatedMemory:
    """An aligned piece of host memory, filled with a pattern."""

    block: np.ndarray[Any, Any]
    pointer: int
    nbytes: int

    @classmethod
    def of(cls, nbytes: int) -> EmulatedMemory:
        block = np.full(nbytes + 256, FILL, np.uint8)
        return cls(block, -(-block.ctypes.data // 256) * 256, nbytes)


@dataclass(slots=True, eq=False)
class Module:
    """Source, compiled with wrappers for the kernels that are asked for until the first launch."""

    source: str
    counts: dict[str, int]
    library: ctypes.CDLL | None = None


class EmulatedHandle:
    """A handle of cuBLAS on the driver's stream."""

    def __init__(self, driver: EmulatedDriver) -> None:
        self._driver, self._cublas = driver, cublas()

    def use_workspace(self, pointer: int, nbytes: int) -> None:
        """It needs none."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        call = getattr(self._cublas, name)
        return lambda *given: self._driver.issue(partial(call, *given))


class EmulatedDriver(RecordingDriver):
    """Kernels are pairs of a module and a name."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._numbers = itertools.count()
        self._issued: list[list[Callable[[], None]]] = []  # in the capture that is open
        self._calls: dict[RecordedNode, Callable[..., None]] = {}  # functions of the node's values

    def allocate(self, nbytes: int) -> Any:
        return EmulatedMemory.of(nbytes)

    def clear(self, pointer: int, nbytes: int) -> None:
        ctypes.memset(pointer, 0, nbytes)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        ctypes.memmove(target, source, nbytes)

    def copy_to_device(self, pointer: int, source: np.ndarray[Any, Any]) -> bool:
        ctypes.memmove(pointer, source.ctypes.data, source.nbytes)
        return False

    def copy_to_host(self, target: np.ndarray[Any, Any], pointer: int) -> None:
        ctypes.memmove(target.ctypes.data, pointer, target.nbytes)

    def load(self, code: str) -> Module:
        return Module(code, {})

    def kernel(self, module: Module, name: str) -> Any:
        return module, name

    def add_kernel(
        self,
        graph: RecordedGraph,
        dependencies: Sequence[RecordedNode],
        launch: Launch,
        values: Sequence[int],
        pdl: Sequence[RecordedNode] = (),
    ) -> RecordedNode:
        module, name = launch.kernel
        module.counts[name] = len(values)
        return super().add_kernel(graph, dependencies, launch, values, pdl)

    def library(self, kind: Any) -> Any:
        if kind is Cufft:
            return EmulatedCufft(self.issue)
        assert kind is Cublas, f"{kind} is not emulated"
        return EmulatedHandle(self)

    def issue(self, call: Callable[[], None]) -> None:
        """Run a library's call, or add it to the capture."""
        if self._issued:
            self._issued[-1].append(call)
        else:
            call()

    def capture(
        self, graph: RecordedGraph, dependencies: Sequence[RecordedNode], issue: Callable[[], None]
    ) -> tuple[tuple[RecordedNode, ...], tuple[str, ...]]:
        nodes = self._chain(dependencies, self._capturing(issue), values=False)
        graph.nodes.extend(nodes)
        return tuple(nodes[-1:]), ("kernel",) * len(nodes)

    def capture_kernels(
        self, graph: RecordedGraph, dependencies: Sequence[RecordedNode], issue: Callable[[], None]
    ) -> tuple[RecordedNode, ...]:
        nodes = self._chain(dependencies, self._capturing(issue), values=True)
        graph.nodes.extend(nodes)
        return tuple(nodes)

    def recapture(
        self, kernels: Sequence[RecordedNode], issue: Callable[[], None]
    ) -> list[tuple[int, ...]]:
        return [call.args for call in self._capturing(issue)]

    def _capturing(self, issue: Callable[[], None]) -> list[Any]:
        """What is issued."""
        self._issued.append([])
        issue()
        return self._issued.pop()

    def _chain(
        self, dependencies: Sequence[RecordedNode], issued: Sequence[Any], *, values: bool
    ) -> list[RecordedNode]:
        """Nodes one behind the other; with `values`, updates may change what they are called with.

        Those are what calls were partially applied to.
        """
        nodes: list[RecordedNode] = []
        for call in issued:
            before = tuple(nodes[-1:] or dependencies)
            given = list(call.args) if values else []
            node = RecordedNode("library", "call", before, values=given)
            self._calls[node] = call.func if values else call
            nodes.append(node)
        return nodes

    def _launch(self, executable: RecordedExecutable) -> None:
        super()._launch(executable)
        for node in executable.graph.nodes:
            if node in self._calls:
                self._calls[node](*executable.values[node])
                continue
            assert node.launch is not None, f"{node.kind} nodes are not emulated"
            self._run(node.launch, executable.values[node])

    def _run(self, launch: Launch, values: Sequence[int]) -> None:
        module, name = launch.kernel
        library = module.library = module.library or self._compiled(module)
        (ctypes.c_uint * 3).in_dll(library, "blockDim")[:] = launch.block
        blocks, together = launch.grid[0], 1
        if launch.cooperative:
            blocks, together = 1, min(blocks, MOST_BLOCKS)
        failed = library.launch(
            ctypes.cast(getattr(library, f"run_{name}"), ctypes.c_void_p),
            (ctypes.c_void_p * len(values))(*values),
            (ctypes.c_uint * blocks)(*range(blocks)),
            blocks,
            together,
            launch.block[0],
            0,
        )
        assert not failed, f"some threads of {name} wait at a barrier for others that have ended"

    def _compiled(self, module: Module) -> ctypes.CDLL:
        wrappers = "".join(kernel_wrapper(name, n) for name, n in module.counts.items())
        source = self._folder / f"module{next(self._numbers)}.cpp"
        text = for_host(module.source, clusters=False) + ARGUMENT + wrappers
        return host_library(STORED_SHIM + GRID, text, source)


def on_device(backend: RecordingBackend, *arrays: Any) -> list[Any]:
    """Copies of arrays in memory of their own."""
    device, buffers = backend.device, []
    for array in arrays:
        buffer = device.pool.buffer(tracegraph.ArrayType(array.dtype, array.shape))
        device.driver.copy_to_device(buffer.pointer, np.ascontiguousarray(array))
        buffers.append(buffer)
    return buffers
