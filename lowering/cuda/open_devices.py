"""OpenDevice: a GPU in use: its driver, streams, memory, and kernels that belong to no Plan."""

from __future__ import annotations

import atexit
import gc
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from lowering.cuda.compilation.compile import (
    cubin,
    custom_cubin,
    kept_functions,
    note_functions,
    program_cache,
    usable_processors,
)
from lowering.cuda.compilation.feature_probes import KERNELS, supports
from lowering.cuda.interface import Driver
from lowering.cuda.memory.arena import Arenas
from lowering.cuda.memory.graph_memory import GraphMemoryPool
from lowering.cuda.memory.heap import Heap
from lowering.cuda.memory.pool import DevicePool
from lowering.cuda.streams.exclusive_use import ExclusiveUse
from lowering.cuda.streams.shutdown import shut_down
from lowering.cuda.streams.stream_state import StreamState
from lowering.cuda.streams.stream_table import StreamTable
from lowering.cuda.streams.timeline import Timeline
from lowering.disk_cache.store import CodeStore
from lowering.plan.target.features import Feature
from tracegraph.cache.settings import keeps_programs
from tracegraph.current_stream import current_stream
from tracegraph.errors import DeviceLostError
from tracegraph.generated.dataclass import write_constructors


class OpenDevice:
    """What all executables on one device share.

    `default_stream` is the device's own stream, which calls use by default; `streams`
    has all in use. `printing` is the use of the print ring, and `looping` that of WHILE nodes.
    `compilers` is how many units are worth compiling at the same time.
    """

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.timeline = Timeline(driver)
        self.heap = Heap(self.timeline)
        self.graph_memory = GraphMemoryPool(self.heap)
        self.pool = DevicePool(self.heap)
        self.default_stream = StreamState(
            driver, self.heap, self.timeline, self.pool, Arenas(self.heap, driver)
        )
        self.streams = StreamTable(self.default_stream)
        self.printing = ExclusiveUse(self.timeline)
        self.looping = ExclusiveUse(self.timeline)
        self.name = f"cuda:{driver.ordinal}"
        self.compilers = usable_processors()
        self._kernels: dict[str, Any] = {}
        self._features: dict[Feature, bool] = {}
        self._tried: dict[str, bool] = {}

    def standalone_kernel(self, source: str, name: str) -> Any:
        """A kernel outside of Plans, compiled at its first use."""
        if name not in self._kernels:
            module = self.driver.load(self.compile(source))
            self._kernels[name] = self.driver.kernel(module, name)
        return self._kernels[name]

    def supports(self, feature: Feature, code: Callable[[], Any] | None = None) -> bool:
        """Whether graphs have a feature; probed once. `code` gives the compiled kernels of probes,
        which are compiled here without it.
        """
        if feature not in self._features:
            self.timeline.settle_loops()  # the probe waits in the driver
            self._features[feature] = supports(feature, self.driver, code or self._probes)
        return self._features[feature]

    def _probes(self) -> Any:
        from lowering.codegen.preamble import preamble  # here, for few programs are probed for

        return self.compile(preamble(KERNELS) + KERNELS)

    def tried(self, name: str, probe: Callable[[Driver, Callable[[str], Any]], bool]) -> bool:
        """Whether a `probe`, which gets the driver and a compiler, succeeds; it runs once."""
        if name not in self._tried:
            self.timeline.settle_loops()  # the probe may wait in the driver
            try:
                self._tried[name] = probe(self.driver, self.compile)
            except (MemoryError, DeviceLostError):
                raise
            except Exception:  # whatever the reason, it cannot be used
                self._tried[name] = False
        return self._tried[name]

    def memory_stats(self) -> dict[str, int]:
        """What `tracegraph.memory_stats` returns."""
        self.driver.activate()
        self.streams.sweep()
        self.heap.release()
        executables = [e for e in self.heap.executables if not e.closed]
        pools = [stream.pool for stream in self.streams]
        for pool in pools:
            pool.reclaim()
        cached = sum(pool.free_bytes for pool in pools)
        free, total = self.driver.memory_info()
        held = self.heap.holdings.held
        return {
            "arrays": held["arrays"] - cached,
            "cached": cached,
            "arenas": held["arenas"],
            "constants": held["constants"],
            "graph_memory": self.driver.graph_memory(),
            "graph_bytes": sum(e.memory()["graph"] for e in executables),
            "graphs": len(executables),
            "high_water": self.heap.holdings.high_water,
            "free": free,
            "total": total,
        }

    def synchronize(self) -> None:
        """Wait for all work; raises what `Timeline.wait` does.

        Streams that other code captures have none. One of another library may be destroyed by now,
        unless calls run on it or loops are in flight.
        """
        chosen, driver = current_stream(), self.driver
        driver.activate()
        with driver.beside_captures():
            for stream in self.streams:
                handle = stream.driver.stream
                is_chosen = chosen is not None and chosen.handle == handle
                is_left = stream.foreign and not is_chosen and stream.timeline.idle
                if not is_left and not driver.is_capturing(handle):
                    stream.timeline.wait()

    def trim(self) -> None:
        """Wait for all work, and give back what is kept for later; raises what waiting does."""
        self.driver.activate()
        self.heap.trim()

    def reset(self) -> None:
        """Wait for all work, close all executables, and give back what is not in use.

        Raises:
            Exception: what `Timeline.wait` raises, after the rest is done.
        """
        try:
            for stream in self.streams:
                stream.timeline.wait()
        finally:
            for executable in list(self.heap.executables):
                executable.close()
            self._kernels.clear()
            gc.collect()
            self.heap.trim()

    def code_bytes(self, code: Any) -> int:
        """The size of what `compile` returned."""
        return len(code.code)

    def compile(self, source: str) -> Any:
        """The cubin of `source` for this device."""
        return cubin(source, self.driver.arch)

    def compile_all(self, sources: Sequence[str]) -> list[Any]:
        """The cubins of several units, which threads compile side by side."""
        if len(sources) <= 1:
            return [self.compile(source) for source in sources]
        from concurrent.futures import ThreadPoolExecutor  # not needed for kernels on disk

        with ThreadPoolExecutor(len(sources), "tracegraph-compile") as threads:
            return list(threads.map(self.compile, sources))

    def program_store(self) -> CodeStore | None:
        """Where the code of whole programs is kept, if it is."""
        return program_cache() if keeps_programs() else None

    def kept(self, functions: Mapping[str, str]) -> list[tuple[list[str], Any]]:
        """The code on disk of functions, by name, each given as a unit of its own: the names of
        those that are there, with the code that has them.
        """
        return kept_functions(functions, self.driver.arch)

    def note(self, functions: Iterable[str], source: str) -> None:
        """Note that functions, each given as a unit of its own, were compiled in this unit."""
        note_functions(functions, source, self.driver.arch)

    def compile_custom(self, source: str, name: str, include_paths: Sequence[str]) -> Any:
        """The cubin of a unit that a user wrote, which the compiler's log calls `name`."""
        return custom_cubin(source, self.driver.arch, name, include_paths)


_opening = threading.Lock()


def open_device(ordinal: int) -> OpenDevice:
    """The device with this number, opened at the first call.

    Raises:
        RuntimeError: there is no such GPU, or no driver.
    """
    with _opening:
        return _open(ordinal)


@cache
def _open(ordinal: int) -> OpenDevice:
    """The device. Mostly a thread makes its context meanwhile, which is waited for here."""
    try:
        from lowering.driver import CudaDriver

        # beside that thread
        write_constructors("lowering.cuda", "lowering.driver", "lowering.plan")
        driver = CudaDriver(ordinal)
    except Exception as error:
        raise RuntimeError(
            f"cuda:{ordinal} cannot be used: {str(error).rstrip('. ')}; without an NVIDIA GPU and "
            'its driver, use the device "host"'
        ) from None  # it has frames of CUDA's packages alone
    device = OpenDevice(driver)
    atexit.register(shut_down, device.timeline)
    return device
