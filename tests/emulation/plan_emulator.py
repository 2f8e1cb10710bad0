"""The Plan emulator: runs whole Plans on the CPU, their kernels in the emulator, products in NumPy.

Scratch is one arena, laid out by the Plan and filled with a pattern. Nodes that no edge orders run
in random order if asked. Kernels of many Plans are compiled as one unit, since starting the
compiler takes most of the time.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from lowering.codegen import Unit, unit_source
from lowering.cuda.effects.channels import connect
from lowering.cuda.streams.timeline import Timeline
from lowering.plan.calls.library_call import StridedArray
from lowering.plan.conditional_nodes import IfElseNode, SwitchNode, WhileNode
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nodes import Graph, HostNode, KernelNode, MemcpyNode, Node, walk
from lowering.plan.owners import SlotTable
from lowering.plan.persistent_kernel import PersistentKernelNode
from lowering.plan.plan import Plan
from lowering.testing.recording_driver import RecordingDriver
from tests.emulation.emulator import FILL, MARGIN, Emulator, Memory
from tests.helpers.running import traced
from tracegraph import tree
from tracegraph.ops.callbacks import CCall
from tracegraph.staging.stages import Traced

TRIPS = 10_000
"""More iterations than any loop of a test makes: a condition that stays set is an error."""


def common_unit(plans: Sequence[Plan]) -> Unit:
    """One translation unit for the kernels of several plans."""
    nodes = tuple(node for plan in plans for node in plan.graph.nodes)
    offsets = {buffer: at for plan in plans for buffer, at in plan.offsets.items()}
    arena = max((plan.arena_bytes for plan in plans), default=0)
    conditions = max((plan.conditions for plan in plans), default=0)
    indirect = tuple(buffer for plan in plans for buffer in plan.indirect)
    graph = Graph(nodes, frozenset())
    return unit_source(
        Plan("all", graph, (), (), (), offsets, arena, conditions, indirect=indirect)
    )


@dataclass
class PlanMemory(Memory):
    """Memory whose scratch buffers are in an arena, at the offsets of a plan."""

    offsets: Mapping[Buffer, int] = field(default_factory=dict)
    arena: np.ndarray[Any, Any] = field(default_factory=lambda: np.zeros(0, np.uint8))

    @classmethod
    def of(cls, plan: Plan) -> PlanMemory:
        """Memory for a plan, all of it filled with a pattern."""
        arena = np.full(plan.arena_bytes + 2 * MARGIN, FILL, np.uint8)
        return cls(offsets=plan.offsets, arena=arena)

    def address(self, buffer: Buffer) -> int:
        if buffer.space != "scratch":
            return super().address(buffer)
        return int(self.arena.ctypes.data) + MARGIN + self.offsets[buffer]

    def get(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        if buffer.space != "scratch":
            return super().get(buffer)
        for margin in (self.arena[:MARGIN], self.arena[self.arena.size - MARGIN :]):
            assert (margin == FILL).all(), "a kernel wrote outside the arena"
        return self.view(buffer).copy()

    def view(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        """The memory of a buffer as an array that can be written."""
        address = self.address(buffer)
        memory = self.arena if buffer.space == "scratch" else self.blocks[buffer]
        start = address - memory.ctypes.data
        part = memory[start : start + buffer.type.nbytes]
        return part.view(buffer.type.dtype).reshape(buffer.type.shape)


class EmulatedPlans:
    """Functions with arguments, lowered and compiled together.

    `planned` makes the plan that runs, if that is another than the public one. With `donate`, all
    arguments are donated.
    """

    times = 1
    inexact = ("erfinv", "erfcinv", "ndtri")
    """Functions for which a host compiler has none, but those of `host_functions.py`."""

    def __init__(
        self,
        programs: Mapping[str, tuple[Any, Sequence[Any]]],
        folder: Path,
        planned: Callable[[Traced], Plan] = lambda stage: stage.lower().plan,
        donate: bool = False,
    ) -> None:
        self._traced = {
            name: traced(
                function,
                *arguments,
                donated=range(len(arguments)) if donate else (),
                device="cuda",
            )
            for name, (function, arguments) in programs.items()
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy's, about constants
            self._plans = {name: planned(stage) for name, stage in self._traced.items()}
        self._unit = common_unit(list(self._plans.values()))
        self._emulator = Emulator(self._unit, folder)

    def run(
        self,
        name: str,
        *arguments: Any,
        order: Random | None = None,
        place: Callable[[Sequence[int]], None] = lambda addresses: None,
    ) -> Any:
        """The results of a program; with `order`, nodes and blocks run in a random order.

        `place` gets the addresses that the arguments are copied to.
        """
        plan, leaves = self._plans[name], tree.leaves(arguments)
        results = run_plan(plan, self._unit, self._emulator, leaves, order, place)
        return tree.unflatten(self._traced[name].out_structure, results)


def run_plan(
    plan: Plan,
    unit: Unit,
    emulator: Emulator,
    arguments: Sequence[Any],
    order: Random | None = None,
    place: Callable[[Sequence[int]], None] = lambda addresses: None,
) -> list[np.ndarray[Any, Any]]:
    """The results of a Plan, whose kernels are in a unit."""
    memory = PlanMemory.of(plan)
    for buffer, leaf in zip(plan.inputs, arguments, strict=True):
        memory.put(buffer, leaf)
    place(list(map(memory.address, plan.inputs)))
    for buffer, data in plan.constants:
        memory.put(buffer, data)
    for buffer in plan.outputs:
        memory.address(buffer)  # no kernel writes to one without elements
    timeline = Timeline(RecordingDriver())  # its host memory is real
    kernels = {n: unit.kernels[n] for n in walk(plan.graph) if n in unit.kernels}
    own = Unit(unit.functions, kernels)
    effects, emulator.channels = connect(plan, own, timeline, SlotTable())
    calls = () if effects is None else effects.calls
    if calls:
        timeline.callbacks.follow(effects is not None and effects.asks)
    try:
        _Run(emulator, memory, order, timeline).graph(plan.graph)
    finally:
        if calls:
            timeline.callbacks.mark_end()
    if calls:
        timeline.callbacks.finish(calls)
    if effects is not None:
        effects.raise_failure()
    return [memory.get(b) for b in plan.outputs]


@dataclass
class _Run:
    emulator: Emulator
    memory: PlanMemory
    order: Random | None
    timeline: Timeline

    def graph(self, graph: Graph) -> None:
        for position in _sequence(graph, self.order):
            self.node(graph.nodes[position])

    def node(self, node: Node) -> None:
        match node:
            case KernelNode() | PersistentKernelNode():
                blocks = self.blocks(self.emulator.code(node).grid[0])
                self.emulator.run(node, self.memory, blocks, backwards=self.order is not None)
                self.timeline.prints.show()
            case _ if self.emulator.has_sequence(node):
                self.emulator.launch_sequence(node, self.memory, self.blocks)
            case MemcpyNode(target=target, source_buffer=source):
                to = self.memory.view(target).reshape(-1).view(np.uint8)
                to[...] = self.memory.view(source).reshape(-1).view(np.uint8)
            case HostNode(call=call):
                CCall.of(call).run()
            case IfElseNode(condition=condition, then=then, otherwise=otherwise):
                self.graph(then if self.emulator.conditions[condition] else otherwise)
            case SwitchNode(condition=condition, branches=branches):
                chosen = self.emulator.conditions[condition]
                assert chosen < len(branches), f"condition {condition} is {chosen}: no such branch"
                self.graph(branches[chosen])
            case WhileNode(condition=condition, body=body):
                for _ in range(TRIPS):
                    if not self.emulator.conditions[condition]:
                        return
                    self.graph(body)
                raise AssertionError(f"condition {condition} is still set after {TRIPS} trips")
            case _:
                node.run_host(*map(self.array, node.operands))

    def blocks(self, count: int) -> list[int]:
        """The order in which blocks run."""
        blocks = list(range(count))
        if self.order is not None:
            self.order.shuffle(blocks)
        return blocks

    def array(self, array: StridedArray) -> np.ndarray[Any, Any]:
        flat = self.memory.view(array.buffer).reshape(-1)[array.offset :]
        strides = tuple(stride * flat.itemsize for stride in array.strides)
        return np.lib.stride_tricks.as_strided(flat, array.shape, strides)


def _sequence(graph: Graph, order: Random | None) -> list[int]:
    """The positions of the nodes, as they stand or in a random order that the edges allow."""
    if order is None:
        return list(range(len(graph.nodes)))
    waiting = {i: {a for a, b in graph.edges if b == i} for i in range(len(graph.nodes))}
    sequence: list[int] = []
    while waiting:
        ready = [i for i, needed in waiting.items() if needed <= set(sequence)]
        chosen = order.choice(ready)
        sequence.append(chosen)
        del waiting[chosen]
    return sequence
