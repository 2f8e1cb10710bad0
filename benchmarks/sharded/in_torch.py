"""The words of PyTorch: a process for each device, and collectives by torch.distributed."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.utils import _pytree

from .vocabularies import Step, Vocabulary

MOST_STEPS = 16
"""Steps of a loop in one CUDA graph, at most."""

WARM_UP = 3
"""Steps that run before they are captured: libraries make what they need."""


class Words:
    """NumPy's names for functions of tensors."""

    fft = torch.fft
    tanh, abs, roll = torch.tanh, torch.abs, torch.roll

    def __init__(self, device: str) -> None:
        self._device = device

    def arange(self, count: int) -> torch.Tensor:
        """Numbers on the device."""
        return torch.arange(count, device=self._device)

    @staticmethod
    def concatenate(arrays: Sequence[torch.Tensor]) -> torch.Tensor:
        """Along the first axis."""
        return torch.cat(tuple(arrays))

    @staticmethod
    def maximum(x: torch.Tensor, least: Any) -> torch.Tensor:
        """Elements that are at least a number."""
        return x.clamp_min(float(least))

    @staticmethod
    def sum(x: torch.Tensor, axis: int | None = None) -> torch.Tensor:
        """The sum of all elements, or along an axis."""
        return x.sum() if axis is None else x.sum(axis)

    @staticmethod
    def argmin(x: torch.Tensor, axis: int) -> torch.Tensor:
        """The positions of the least along an axis."""
        return x.argmin(axis)


def _psum(x: torch.Tensor) -> torch.Tensor:
    """In place, as programs of PyTorch do; no program here uses the summand again."""
    dist.all_reduce(x)
    return x


def _neighbours(u: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    rank, count = dist.get_rank(), dist.get_world_size()
    behind, before = (rank + 1) % count, (rank - 1) % count
    last, first = u[-1:].contiguous(), u[:1].contiguous()
    above, below = torch.empty_like(last), torch.empty_like(first)
    exchanged = [
        dist.P2POp(dist.isend, last, behind),
        dist.P2POp(dist.isend, first, before),
        dist.P2POp(dist.irecv, above, before),  # in the order of the sends, if both are one rank
        dist.P2POp(dist.irecv, below, behind),
    ]
    for request in dist.batch_isend_irecv(exchanged):
        request.wait()
    return above, below


def _transposed(x: torch.Tensor) -> torch.Tensor:
    """The transpose of an array in blocks of rows, in blocks of rows."""
    rows, columns = x.shape
    count = dist.get_world_size()
    sent = x.reshape(rows, count, columns // count).transpose(0, 1).contiguous()
    found = torch.empty_like(sent)
    dist.all_to_all_single(found, sent)
    return found.reshape(rows * count, columns // count).T


def _loop(steps: int, step: Step, state: Any) -> Any:
    for _ in range(steps):
        state = step(state)
    return state


def _loop_while(goes_on: Step, step: Step, state: Any) -> Any:
    while goes_on(state):  # each reads one element on the host
        state = step(state)
    return state


def _itself(x: Any) -> Any:
    return x


class Captured:
    """Loops as CUDA graphs of several steps, made in the first call of a function.

    All memory stays where it is: a function copies its inputs there, and loops their states.
    """

    def __init__(self, prepared: Callable[[Step], Step]) -> None:
        self._prepared = prepared
        self._inputs: list[torch.Tensor] = []
        self._loops: dict[int, tuple[torch.cuda.CUDAGraph, list[torch.Tensor]]] = {}
        self._number = 0

    def start(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The inputs where they always are; a call begins."""
        self._number = 0
        if not self._inputs:
            self._inputs = [x.clone() for x in inputs]
        for own, x in zip(self._inputs, inputs, strict=True):
            own.copy_(x)
        return self._inputs

    def _steps(self, count: int, step: Step, state: Any) -> tuple[torch.cuda.CUDAGraph, Any, Any]:
        """A graph of steps, and the leaves and the tree of the state that it reads and writes."""
        leaves, structure = _pytree.tree_flatten(state)
        self._number += 1
        if self._number not in self._loops:
            step = self._prepared(step)
            own = [torch.as_tensor(x, device=self._inputs[0].device).clone() for x in leaves]
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(WARM_UP):
                    step(_pytree.tree_unflatten([x.clone() for x in own], structure))
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                found = _loop(count, step, _pytree.tree_unflatten(own, structure))
                for x, new in zip(own, _pytree.tree_leaves(found), strict=True):
                    x.copy_(new)
            self._loops[self._number] = graph, own
        graph, own = self._loops[self._number]
        for x, first in zip(own, leaves, strict=True):
            if isinstance(first, torch.Tensor):
                x.copy_(first)
            else:
                x.fill_(first)
        return graph, own, structure

    def loop(self, steps: int, step: Step, state: Any) -> Any:
        """The state after all steps."""
        count = max(n for n in range(1, MOST_STEPS + 1) if steps % n == 0)
        graph, own, structure = self._steps(count, step, state)
        for _ in range(steps // count):
            graph.replay()
        return _pytree.tree_unflatten(own, structure)

    def loop_while(self, goes_on: Step, step: Step, state: Any) -> Any:
        """The same, a step at a time."""
        graph, own, structure = self._steps(1, step, state)
        while goes_on(_pytree.tree_unflatten(own, structure)):
            graph.replay()
        return _pytree.tree_unflatten(own, structure)


def torch_on_all(device: str, count: int, way: str = "torch") -> Vocabulary:
    """PyTorch in the process of one rank, whose blocks these are: eagerly, or with steps as CUDA
    graphs, which torch.compile has compiled if the way is so named.
    """
    graphs, compiled = way != "torch", way == "torch-compile"
    exchange = torch.compiler.disable if compiled else _itself
    rank = dist.get_rank()
    where = f"cuda:{rank}" if device == "cuda" else "cpu"
    captured: list[Captured] = []

    def block(x: Any, divided: bool) -> torch.Tensor:
        whole = torch.from_numpy(np.ascontiguousarray(x))
        own = whole.chunk(count)[rank] if divided else whole
        return own.clone().to(where)

    def built(fun: Callable[..., Any], divided: Sequence[bool], same: bool) -> Callable[..., Any]:
        captured[:] = [Captured(torch.compile if compiled else _itself)]

        def run(*blocks: torch.Tensor) -> Any:
            if graphs:
                return fun(*captured[0].start(blocks))
            return fun(*[x.clone() for x in blocks])

        return torch.no_grad()(run)

    def wait(found: Any) -> None:
        if device == "cuda":
            torch.cuda.synchronize()

    def whole(found: Any, same: bool) -> Any:
        if same:
            return found.cpu().numpy()
        blocks = [torch.empty_like(found.contiguous()) for _ in range(count)]
        dist.all_gather(blocks, found.contiguous())
        return torch.cat(blocks).cpu().numpy()

    return Vocabulary(
        f"PyTorch on {count}",
        count,
        Words(where),
        lambda n, step, x: captured[0].loop(n, step, x) if graphs else _loop(n, step, x),
        lambda goes_on, step, x: (
            captured[0].loop_while(goes_on, step, x) if graphs else _loop_while(goes_on, step, x)
        ),
        exchange(_psum),
        exchange(_neighbours),
        exchange(_transposed),
        built,
        block,
        wait,
        as_float32=lambda x: x.float(),
        whole=whole,
    )


def in_ranks(device: str, count: int, measure: Callable[..., None], *arguments: Any) -> None:
    """Call `measure(is_first, …)` in a process for each device, which make a group."""
    with tempfile.TemporaryDirectory() as folder:
        given = (os.getpid(), f"file://{folder}/group", device, count, measure, arguments)
        torch.multiprocessing.spawn(_rank, given, nprocs=count)


def _rank(
    rank: int,
    parent: int,
    group: str,
    device: str,
    count: int,
    measure: Callable[..., None],
    arguments: Sequence[Any],
) -> None:
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    torch.set_num_threads(1)
    if device == "cuda":
        torch.cuda.set_device(rank)
    library = "nccl" if device == "cuda" else "gloo"
    own = torch.device("cuda", rank) if device == "cuda" else None
    dist.init_process_group(library, init_method=group, rank=rank, world_size=count, device_id=own)
    measure(rank == 0, *arguments)
    dist.barrier()
    os._exit(0)  # graphs would wait for the group, which is gone by then


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
