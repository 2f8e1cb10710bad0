"""Clocks: a Plan whose nodes run one after the other, with a kernel after each that reads the time.

Each clock has a place for the time since the clock before it, summed over all its runs, and for the
number of these. A second clock at the beginning of a graph measures what a clock itself takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from time import perf_counter_ns
from typing import Any

import numpy as np

from lowering.plan.custom_kernel import CustomKernelNode
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Kernel
from lowering.plan.nests.rounding import round_up
from lowering.plan.nodes import (
    Graph,
    KernelNode,
    MemcpyNode,
    Node,
    body_graphs,
    with_rewritten_bodies,
)
from lowering.plan.plan import Plan
from lowering.plan.target.hardware import ALIGNMENT
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.custom_kernels import CudaText, CustomKernel
from tracegraph.ir.kernel_calls import KernelCall, Scalar
from tracegraph.ir.record import replace
from tracegraph.ir.types import ArrayType
from tracegraph.sharding.partition_spec import PartitionSpec

_INT64 = np.dtype(np.int64)

_TEXT = """\
#ifdef __CUDACC__
__device__ inline long long tg_nanoseconds() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return (long long)now;
}
#endif
extern "C" __global__ void tg_read_clock(long long* times, long long place, long long length) {
  const long long now = tg_nanoseconds();
  if (place == 0) {
    for (long long i = 0; i < length; ++i) times[i] = 0;
  } else {
    times[2 * place] += now - times[0];
  }
  times[2 * place + 1] += 1;
  times[0] = tg_nanoseconds();
}
"""


def _read_clock(times: np.ndarray[Any, Any], place: int, length: int) -> np.ndarray[Any, Any]:
    """What the kernel does."""
    now = perf_counter_ns()
    if place == 0:
        times[:] = 0
    else:
        times[2 * place] += now - times[0]
    times[2 * place + 1] += 1
    times[0] = perf_counter_ns()
    return times


_CLOCK = CustomKernel(
    name="tg_read_clock",
    where="profile",
    reference=_read_clock,
    parameters=("times", "place", "length"),
    code=CudaText(_TEXT, "tg_read_clock"),
    out=lambda times, place, length: times,
    batching=None,
    scalars={"place": _INT64, "length": _INT64},
    grid=1,
    block=1,
    aliases={0: 0},
    purpose="reads the time",
)


@dataclass(frozen=True, slots=True)
class Timed:
    """A node, how many loops and branches are around it, and the places of its times.

    `number` is that of the node of the Plan, in the order in which `launched` has them; several
    nests of one kernel may have it in common. `own` is the place of the clock after it, `entering`
    those of the clocks that its bodies begin with, and `idle` that of a clock with nothing before
    it in the same graph.
    """

    node: Node
    number: int
    depth: int
    own: int
    entering: tuple[int, ...]
    idle: int

    def runs(self, times: np.ndarray[Any, Any]) -> int:
        """How often it ran, by what the clocks have left in memory."""
        return int(times[2 * self.own + 1])

    def seconds(self, times: np.ndarray[Any, Any]) -> float:
        """The time of all its runs without that of its bodies, and without that of the clocks."""
        idle = times[2 * self.idle] / max(times[2 * self.idle + 1], 1)
        places = self.own, *self.entering
        total = sum([times[2 * p] - times[2 * p + 1] * idle for p in places])
        return max(float(total), 0.0) * 1e-9


@dataclass(slots=True)
class _Clocks:
    """Makes the clocks of a Plan; `places` counts those that are taken, and `nodes` the nodes."""

    times: Buffer
    timed: list[Timed]
    each_nest: bool
    places: int = 0
    nodes: int = 0

    def clock(self, place: int) -> Node:
        type_ = self.times.type
        scalars = Scalar.of(place, _INT64), Scalar.of(type_.size, _INT64)
        call, types = KernelCall(_CLOCK, scalars), (type_,)
        return CustomKernelNode(call, call.launch(types), types, (self.times,), (self.times,))

    def place(self) -> int:
        self.places += 1
        return self.places - 1

    def graph(self, graph: Graph, depth: int) -> Graph:
        """The graph with clocks, and those of its bodies."""
        first, idle = self.place(), self.place()
        nodes = [self.clock(first), self.clock(idle)]
        for node in graph.nodes:
            number = self.nodes
            self.nodes += 1
            *before, last = _by_nest(node) if self.each_nest else (node,)
            for part in before:
                self.timed.append(Timed(part, number, depth, self.place(), (), idle))
                nodes += [part, self.clock(self.places - 1)]
            at = len(self.timed)
            entering: list[int] = []

            def inside(body: Graph, entering: list[int] = entering) -> Graph:
                entering.append(self.places)
                return self.graph(body, depth + 1)

            changed = with_rewritten_bodies(last, inside)
            own = self.place()
            self.timed.insert(at, Timed(last, number, depth, own, tuple(entering), idle))
            nodes += [changed, self.clock(own)]
        return Graph(tuple(nodes), frozenset(pairwise(range(len(nodes)))))


def _by_nest(node: Node) -> list[Node]:
    """A kernel of several nests as a kernel for each, to be run one after the other."""
    if not isinstance(node, KernelNode) or len(node.kernel.nests) == 1:
        return [node]
    name, nests = node.kernel.name, node.kernel.nests
    kernels = [Kernel(f"{name}_nest{number}", (nest,)) for number, nest in enumerate(nests)]
    return [replace(node, kernel=kernel) for kernel in kernels]


def with_clocks(plan: Plan, each_nest: bool = False) -> tuple[Plan, tuple[Timed, ...]]:
    """A Plan with clocks, and what they measure; nodes before those that they contain.

    With `each_nest`, nests of one kernel are kernels of their own. Its last result has the times,
    in nanoseconds; on a mesh, each device has a block of it.
    """
    clocks = 2 * sum(1 for _ in _graphs(plan.graph))
    clocks += sum([len(_by_nest(node)) if each_nest else 1 for node in _nodes(plan.graph)])
    type_ = ArrayType(_INT64, (2 * clocks,))
    numbers = [b.number for b in plan.offsets if b.space == "scratch"]
    times = Buffer("scratch", max(numbers, default=-1) + 1, type_)
    result = Buffer("output", len(plan.outputs), type_)
    made = _Clocks(times, [], each_nest)
    graph = made.graph(plan.graph, 0)
    last = len(graph.nodes)
    graph = Graph((*graph.nodes, MemcpyNode(result, times)), graph.edges | {(last - 1, last)})
    start = round_up(plan.arena_bytes, ALIGNMENT)
    sharding = plan.sharding
    if sharding is not None:
        spec = PartitionSpec(sharding.mesh.axis_names)
        whole = ArrayType(_INT64, (type_.size * sharding.mesh.size,))
        sharding = replace(
            sharding,
            out_specs=(*sharding.out_specs, spec),
            out_types=(*sharding.out_types, whole),
        )
    clocked = replace(
        plan,
        sharding=sharding,
        graph=graph,
        outputs=(*plan.outputs, result),
        offsets={**plan.offsets, times: start},
        arena_bytes=start + round_up(type_.nbytes, ALIGNMENT),
    )
    return clocked, tuple(made.timed)


def _graphs(graph: Graph) -> Iterator[Graph]:
    """A graph, and the bodies inside, without the phases of kernels."""
    yield graph
    for node in graph.nodes:
        for body in body_graphs(node):
            yield from _graphs(body)


def _nodes(graph: Graph) -> Iterator[Node]:
    for each in _graphs(graph):
        yield from each.nodes
