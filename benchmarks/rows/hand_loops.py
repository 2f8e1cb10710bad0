"""The loops of `loops.cu`, as limits of the rows that have a loop.

"one kernel" makes all steps in a single kernel, whose blocks meet after each; "while node" is a
graph with a WHILE node, whose body is a single kernel. Both read and write memory at each step, and
start from the row's inputs in each run. Their results are compared as the contestants' are.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.limits import Limit, stream_of_limits
from benchmarks.harness.row import Inputs, Results
from lowering.plan.nests.rounding import ceil_div

from . import counted_loop, heat, mandelbrot, nested_loop, reduction_loop, stacked_scan

SOURCE = Path(__file__).with_name("loops.cu").read_text()
THREADS = 1024
_APART = 128
"""Bytes between what blocks wait for and what else they tell each other."""

_TYPES = {"float32": "float", "float64": "double"}
_TEMPLATES = (
    "relax",
    "scale_and_stack",
    "scale_while",
    "heat",
    "mandelbrot",
    "while_begin",
    "while_step",
    "nested_begin",
    "nested_step",
)


def code_for(arch: str, dtype: np.dtype) -> Any:
    """All kernels for arrays of a dtype."""
    from cuda.core import Program, ProgramOptions

    names = (*(f"{name}<{_TYPES[dtype.name]}>" for name in _TEMPLATES), "nested_round")
    program = Program(SOURCE, "c++", options=ProgramOptions(arch=arch, std="c++17"))
    return program.compile("cubin", name_expressions=names)


@cache
def _loaded(dtype: np.dtype) -> Any:
    from cuda.core import Device

    stream_of_limits()  # also makes the device current
    return code_for(f"sm_{Device(0).arch}", dtype)


def _kernel(name: str, dtype: np.dtype) -> Any:
    return _loaded(dtype).get_kernel(f"{name}<{_TYPES[dtype.name]}>")


@dataclass(frozen=True)
class _Block:
    """Device memory for an array."""

    buffer: Any
    shape: tuple[int, ...]
    dtype: np.dtype

    @classmethod
    def like(cls, shape: int | tuple[int, ...], dtype: Any) -> _Block:
        from cuda.core import Device

        shape, dtype = (shape,) if isinstance(shape, int) else shape, np.dtype(dtype)
        nbytes = int(np.prod(shape)) * dtype.itemsize
        stream = stream_of_limits()
        return cls(Device(0).allocate(nbytes, stream=stream), shape, dtype)

    @classmethod
    def holding(cls, x: np.ndarray) -> _Block:
        block = cls.like(x.shape, x.dtype)
        pinned, view = block._pinned()
        view[...] = x
        stream = stream_of_limits()
        block.buffer.copy_from(pinned, stream=stream)
        stream.sync()
        return block

    def clear(self) -> None:
        self.buffer.fill(0, stream=stream_of_limits())

    def read(self) -> np.ndarray:
        pinned, view = self._pinned()
        stream = stream_of_limits()
        self.buffer.copy_to(pinned, stream=stream)
        stream.sync()
        return view.copy()

    def _pinned(self) -> tuple[Any, np.ndarray]:
        from cuda.core import LegacyPinnedMemoryResource

        pinned = LegacyPinnedMemoryResource().allocate(self.buffer.size)
        memory = (ctypes.c_uint8 * self.buffer.size).from_address(int(pinned.handle))
        flat = np.ctypeslib.as_array(memory).view(self.dtype)
        return pinned, flat[: int(np.prod(self.shape))].reshape(self.shape)

    @property
    def address(self) -> np.uint64:
        return np.uint64(int(self.buffer.handle))


def _limit(run: Callable[[], None], results: Sequence[_Block]) -> Limit:
    def read() -> Results:
        return tuple(block.read() for block in results)

    return Limit(run, lambda _: stream_of_limits().sync(), results=read)


def _blocks(size: int) -> int:
    """As many as have a thread for each element, but all must be resident."""
    from cuda.core import Device

    return min(ceil_div(size, THREADS), Device(0).properties.multiprocessor_count)


def _arguments(values: Sequence[Any], dtype: np.dtype) -> list[Any]:
    """As the kernels take them: addresses, counts, and numbers of the row's dtype."""
    takes: dict[type, Callable[[Any], Any]] = {
        _Block: lambda block: block.address,
        np.uint64: np.uint64,
        int: np.uint32,
        float: dtype.type,
    }
    return [takes[type(value)](value) for value in values]


def _one_kernel(
    name: str, start: np.ndarray, *values: Any, results: Sequence[_Block], signals: _Block
) -> Limit:
    """A kernel that is launched cooperatively, with `signals` cleared before."""
    from cuda.core import LaunchConfig, launch

    stream, kernel = stream_of_limits(), _kernel(name, start.dtype)
    blocks = _blocks(start.size)
    config = LaunchConfig(grid=blocks, block=THREADS, is_cooperative=blocks > 1)
    arguments = _arguments((*values, signals), start.dtype)

    # a limit holds its blocks of memory as long as it can run
    def run(held: Any = (values, signals)) -> None:
        signals.clear()
        launch(stream, config, kernel, *arguments)

    return _limit(run, results)


def _signals(words: int = 0) -> _Block:
    return _Block.like(_APART // 4 + words, np.uint32)


def _parts(x: np.ndarray) -> _Block:
    return _Block.like(2 * _blocks(x.size), x.dtype)


def _fori(inputs: Inputs) -> Limit:
    (x,) = inputs
    out, start = _Block.like(x.shape, x.dtype), _Block.holding(x)
    row = counted_loop
    values = (out, start, x.size, row.STEPS, row.FACTOR, row.SUMMAND)
    return _one_kernel("relax", x, *values, results=[out], signals=_signals())


def _scan(inputs: Inputs) -> Limit:
    (x,) = inputs
    out, start = _Block.like(x.shape, x.dtype), _Block.holding(x)
    sums = _Block.like(stacked_scan.STEPS, x.dtype)
    values = (out, sums, start, x.size, stacked_scan.STEPS, stacked_scan.FACTOR, _parts(x))
    return _one_kernel("scale_and_stack", x, *values, results=[out, sums], signals=_signals())


def _while(inputs: Inputs) -> Limit:
    x, threshold = inputs
    out, start = _Block.like(x.shape, x.dtype), _Block.holding(x)
    steps = _Block.like((), np.int64)
    values = (out, steps, start, x.size, reduction_loop.FACTOR, threshold, _parts(x))
    return _one_kernel("scale_while", x, *values, results=[out, steps], signals=_signals())


def _heat(inputs: Inputs) -> Limit:
    (u,) = inputs
    assert heat.STEPS % 2 == 0, "after an odd number of steps the result is in the other array"
    out, other = (_Block.like(u.shape, u.dtype) for _ in range(2))
    values = (out, other, _Block.holding(u), *u.shape, heat.STEPS, heat.RATE)
    return _one_kernel("heat", u, *values, results=[out], signals=_signals())


def _mandelbrot(inputs: Inputs) -> Limit:
    x, y = inputs
    re, im = (_Block.like(x.shape, x.dtype) for _ in range(2))
    counts, steps = _Block.like(x.shape, np.int32), _Block.like((), np.int64)
    places = (re, im, counts, steps, _Block.holding(x), _Block.holding(y))
    most, signals = mandelbrot.MOST_STEPS, _signals(mandelbrot.MOST_STEPS)
    alive = np.uint64(signals.address + np.uint64(_APART))
    values = (*places, x.size, most, alive)
    return _one_kernel("mandelbrot", x, *values, results=[counts, steps], signals=signals)


def _while_node(inputs: Inputs) -> Limit:
    from cuda.core.graph import GraphDefinition

    x, threshold = inputs
    out, start = _Block.like(x.shape, x.dtype), _Block.holding(x)
    steps = _Block.like((), np.int64)
    definition = GraphDefinition()
    unfinished = definition.create_condition()
    handle = np.uint64(int(unfinished.handle))
    begin = (out, steps, start, x.size, threshold, handle)
    node = _node(definition, "while_begin", x.dtype, *begin)
    body = node.while_loop(unfinished).body
    factor = reduction_loop.FACTOR
    _node(body, "while_step", x.dtype, out, steps, x.size, factor, threshold, handle)
    return _graph(definition, [out, steps], held=start)


def _nested_nodes(inputs: Inputs) -> Limit:
    from cuda.core.graph import GraphDefinition

    x, outer, inner = inputs
    out, start = _Block.like(x.shape, x.dtype), _Block.holding(x)
    counters = _Block.like(2, np.uint32)
    definition = GraphDefinition()
    unfinished = definition.create_condition()
    rounds = np.uint64(int(unfinished.handle))
    begin = (out, start, x.size, counters, outer, rounds)
    node = _node(definition, "nested_begin", x.dtype, *begin)
    body = node.while_loop(unfinished).body
    stepping = body.create_condition()
    steps = np.uint64(int(stepping.handle))
    node = _node(body, "nested_round", x.dtype, counters, outer, inner, rounds, steps)
    body = node.while_loop(stepping).body
    values = (out, x.size, nested_loop.FACTOR, nested_loop.SUMMAND, counters, inner, steps)
    _node(body, "nested_step", x.dtype, *values)
    return _graph(definition, [out], held=(start, counters))


def _node(graph: Any, name: str, dtype: np.dtype, *values: Any) -> Any:
    """One block; `nested_round` is one thread."""
    from cuda.core import LaunchConfig

    alone = name == "nested_round"
    kernel = _loaded(dtype).get_kernel(name) if alone else _kernel(name, dtype)
    config = LaunchConfig(grid=1, block=1 if alone else THREADS)
    return graph.launch(config, kernel, *_arguments(values, dtype))


def _graph(definition: Any, results: Sequence[_Block], held: Any) -> Limit:
    graph, stream = definition.instantiate(), stream_of_limits()
    graph.upload(stream)

    def run(held: Any = (definition, held)) -> None:
        graph.launch(stream)

    return _limit(run, results)


def _on_gpus(make: Callable[[Inputs], Limit]) -> Callable[[str, Inputs], Limit | None]:
    return lambda device, inputs: make(inputs) if device == "cuda" else None


HAND_LOOPS: Mapping[str, Callable[[str, Inputs], Limit | None]] = {
    "fori in one kernel": _on_gpus(_fori),
    "scan in one kernel": _on_gpus(_scan),
    "while in one kernel": _on_gpus(_while),
    "heat in one kernel": _on_gpus(_heat),
    "mandelbrot in one kernel": _on_gpus(_mandelbrot),
    "while node": _on_gpus(_while_node),
    "nested while nodes": _on_gpus(_nested_nodes),
}
"""By name, as `limits.LIMITS`."""
