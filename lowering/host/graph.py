"""Graphs of a plan as steps: kernels, library calls, copies, and conditional nodes."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np

from lowering.buffer import Buffer
from lowering.host.arena import Array, Workspace
from lowering.host.bind import nest_steps
from lowering.host.effects import Effects
from lowering.host.frame import Frame, Step
from lowering.host.library import product
from lowering.host.nests import kernel_runs
from lowering.host.registers import View
from lowering.host.schedule import Overlaps, Schedule, schedule
from lowering.plan import (
    Graph,
    IfElseNode,
    IfNode,
    KernelNode,
    LibraryNode,
    MemcpyNode,
    Node,
    SwitchNode,
    WhileNode,
    walk,
)

Schedules = dict[KernelNode, list[Schedule]]


def kernel_schedules(
    graph: Graph, overlaps: Overlaps, effects: Effects, workspace: Workspace
) -> Schedules:
    """The schedules of every kernel, bodies included; `workspace` grows to what they need."""
    return {
        node: [schedule(r, overlaps, workspace) for r in kernel_runs(node.kernel, effects)]
        for node in walk(graph)
        if isinstance(node, KernelNode)
    }


class GraphBinder:
    """Makes the steps of graphs.

    With `order`, the nodes of a graph run in a new random order that its edges allow, each time:
    wrong results then show that an edge is missing.
    """

    def __init__(
        self,
        schedules: Schedules,
        effects: Effects,
        frame: Frame,
        workspace: Array,
        order: Random | None,
    ) -> None:
        self._schedules = schedules
        self._effects = effects
        self._conditions = effects.conditions
        self._frame = frame
        self._workspace = workspace
        self._order = order

    def steps(self, graph: Graph) -> list[Step]:
        """The steps that run a graph, in order."""
        nodes = [self._node_steps(node) for node in graph.nodes]
        if self._order is None:
            return [step for steps in nodes for step in steps]
        return [_shuffled(nodes, graph, self._order)]

    def _node_steps(self, node: Node) -> list[Step]:
        match node:
            case KernelNode():
                schedules = self._schedules[node]
                return [
                    s for each in schedules for s in nest_steps(each, self._frame, self._workspace)
                ]
            case LibraryNode():
                function, views = product(node)
                return [self._frame.step(function, self._slots(*views))]
            case MemcpyNode():
                slots = self._slots(_bytes(node.target), _bytes(node.source_buffer))
                return [self._frame.step(np.copyto, slots)]
            case IfNode(condition=number, then=then):
                return [_branches(self._conditions, number, [[], self.steps(then)])]
            case IfElseNode(condition=number, then=then, otherwise=otherwise):
                return [
                    _branches(self._conditions, number, [self.steps(otherwise), self.steps(then)])
                ]
            case SwitchNode(condition=number, branches=branches):
                return [_branches(self._conditions, number, [self.steps(b) for b in branches])]
            case WhileNode(condition=number, body=body):
                return [self._effects.loop(number, self.steps(body))]

    def _slots(self, *views: View) -> list[int]:
        return [self._frame.slot(view) for view in views]


def _bytes(buffer: Buffer) -> View:
    return View(np.dtype(np.uint8), (buffer.type.nbytes,), {}, buffer, (1,), 0)


def _branches(conditions: list[int], number: int, branches: Sequence[Sequence[Step]]) -> Step:
    def run() -> None:
        for step in branches[conditions[number]]:
            step()

    return run


def _shuffled(nodes: Sequence[Sequence[Step]], graph: Graph, order: Random) -> Step:
    before = [{i for i, j in graph.edges if j == node} for node in range(len(nodes))]

    def run() -> None:
        done: set[int] = set()
        while len(done) < len(nodes):
            ready = [n for n in range(len(nodes)) if n not in done and before[n] <= done]
            chosen = order.choice(ready)
            for step in nodes[chosen]:
                step()
            done.add(chosen)

    return run
