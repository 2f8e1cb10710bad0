"""Work captured into a CUDA graph by hand, for libraries whose users do that.

A replay reads and writes the same memory each time: it takes no new arguments, and its results are
overwritten by the next. It shows how far one gets where that is acceptable. What it reads is kept
with it, in the function that was captured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from .library import Unavailable
from .row import Prepare


def torch_graph(run: Callable[[], Any]) -> Callable[[], Any]:
    """Replays what `run` does."""
    import torch

    if not torch.cuda.is_available():
        raise Unavailable("CUDA graphs need a GPU")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):  # compiles, and fills caches, outside the capture
        for _ in range(2):
            run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        result = run()

    return partial(_replayed, graph.replay, result, run)


def _replayed(launch: Callable[[], Any], result: Any, captured: Callable[[], Any]) -> Any:
    launch()
    return result


@dataclass(frozen=True)
class CupyReplay:
    """A captured graph, the pool that its memory was taken from, and what was captured."""

    graph: Any
    stream: Any
    result: Any
    pool: Any
    captured: Callable[[], Any]

    def __call__(self) -> Any:
        self.graph.launch(self.stream)
        return self.result


def cupy_graph(run: Callable[[], Any]) -> Callable[[], Any]:
    """Replays what `run` does."""
    import cupy

    pool = cupy.cuda.MemoryPool()  # of its own: temporaries are free again after the capture
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.runtime.deviceSynchronize()
    with cupy.cuda.using_allocator(pool.malloc), stream:
        run()  # compiles, and fills the pool, outside the capture
        stream.synchronize()
        stream.begin_capture()
        result = run()
        graph = stream.end_capture()
    return CupyReplay(graph, stream, result, pool, run)


def warp_graph(run: Callable[[], Any]) -> Callable[[], Any]:
    """Replays what `run` does; on the host, where Warp has no graphs of loops, runs it."""
    import warp

    run()  # compiles outside the capture
    if not warp.get_device().is_cuda:
        return run
    with warp.ScopedCapture() as capture:
        result = run()

    return partial(_replayed, partial(warp.capture_launch, capture.graph), result, run)


_CAPTURES = {"torch": torch_graph, "cupy": cupy_graph, "warp": warp_graph}


def and_graphs(**contestants: Prepare) -> dict[str, Prepare]:
    """Contestants by library, and behind each the same with its work captured into a graph."""
    both: dict[str, Prepare] = {}
    for library, prepare in contestants.items():
        both[library] = prepare
        both[f"{library} graph"] = _captured(_CAPTURES[library], prepare)
    return both


def _captured(
    capture: Callable[[Callable[[], Any]], Callable[[], Any]], prepare: Prepare
) -> Prepare:
    return lambda *inputs: capture(prepare(*inputs))
