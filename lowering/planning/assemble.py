"""Assembly: a finished draft becomes a Plan, with its nodes in order of execution."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import count

import numpy as np

from lowering.draft.arena_layout import ArenaLayout
from lowering.draft.dependences import edges
from lowering.draft.draft import Draft
from lowering.draft.draft_nodes import (
    Block,
    BodyCopy,
    DraftBranch,
    DraftKernel,
    DraftLoop,
    DraftNode,
    FinishedNode,
    is_written_out,
)
from lowering.plan.conditional_nodes import IfElseNode, SwitchNode, WhileNode
from lowering.plan.graph_composition import chain, composed
from lowering.plan.nests.analysis import nest_expressions
from lowering.plan.nests.kernel import Kernel, Nest
from lowering.plan.nodes import Graph, KernelNode, LibraryNode, Node, walk
from lowering.plan.persistent_kernel import PersistentKernelNode
from lowering.plan.plan import Plan
from lowering.plan.serialization import serialized
from lowering.plan.target.target import Target
from lowering.planning.libraries.agreed_stops import AgreedStops, with_agreed_stops
from lowering.planning.libraries.collectives import with_groups
from lowering.planning.libraries.exchange_kernels import with_exchange_kernels
from lowering.planning.libraries.tiles_in_sequence import tiles_in_sequence
from lowering.planning.libraries.workspaces import with_workspaces
from lowering.planning.memory_bound import memory_bound_in_sequence
from tracegraph.ir.record import replace
from tracegraph.ir.scalar_values import Apply


def assemble(draft: Draft, *, per_launch: bool) -> Plan:
    """The Plan of a draft whose memory is assigned."""
    memory, context, program = draft.memory, draft.context, draft.program
    assert memory is not None
    name = _identifier(program.name)
    graph = _Assembler(name, memory).graph(draft.block)
    agreed = AgreedStops(graph, None, memory.offsets, memory.nbytes)
    if context.target.graphs:
        agreed = with_agreed_stops(graph, context, memory.offsets, memory.nbytes)
    constants = list(zip(draft.constants, program.constants, strict=True))
    if agreed.stop_flag is not None:
        constants.append((agreed.stop_flag, np.zeros((), agreed.stop_flag.type.dtype)))
    graph = with_groups(agreed.graph)
    if context.target.graphs:
        graph = with_exchange_kernels(graph, name, context.target, agreed.offsets)
    return Plan(
        name=name,
        graph=_ordered(graph, context.target),
        inputs=draft.inputs,
        outputs=draft.outputs,
        constants=tuple(constants),
        offsets=agreed.offsets,
        arena_bytes=agreed.arena_bytes,
        conditions=context.conditions,
        monitors=tuple(context.monitors),
        failures=tuple(context.failures),
        prints=tuple(context.prints),
        callbacks=tuple(context.callbacks),
        donations=draft.donations,
        per_launch=per_launch,
        copied=tuple([source for source, _ in context.scratch_copies]),
        as_graph=context.target.graphs,
        stop_flag=agreed.stop_flag,
    )


def _ordered(graph: Graph, target: Target) -> Graph:
    """The graph, with edges between nodes that would not gain by running side by side."""
    if target.graphs:
        graph = with_workspaces(graph)
        if target.contractions.tiles:
            graph = tiles_in_sequence(graph)
        return memory_bound_in_sequence(graph, target.rates)
    calls = (node.call for node in walk(graph) if isinstance(node, LibraryNode))
    collective = any(call.exclusive for call in calls)  # they have one order on all devices
    return serialized(graph) if collective else graph


@lru_cache(maxsize=256)
def _identifier(name: str) -> str:
    """A function's name as part of an identifier."""
    return re.sub(r"\W+", "_", name).strip("_") or "program"


class _Assembler:
    """Builds a graph for each block, and numbers kernels in order of execution."""

    def __init__(self, name: str, memory: ArenaLayout) -> None:
        self.name = name
        self.memory = memory
        self.numbers = count()
        self.kernels: dict[tuple[Nest, ...], Kernel] = {}

    def graph(self, block: Block) -> Graph:
        order = self.edges(block)
        if any(map(is_written_out, block.nodes)):
            return composed([self.part(node, None) for node in block.nodes], order)
        return Graph(tuple([self.node(node, None) for node in block.nodes]), order)

    def edges(self, block: Block) -> frozenset[tuple[int, int]]:
        order = self.memory.orders[block]
        return edges(order, self.memory.offsets) if self.memory.shared else order.edges

    def part(self, node: DraftNode, name: str | None) -> Graph:
        """The Plan's nodes for a node: one, or those of all steps of a loop."""
        if is_written_out(node):
            return self.body(node)
        return Graph((self.node(node, name),), frozenset())

    def body(self, node: DraftLoop) -> Graph:
        """The graph of a loop's body, as many times as it is copied."""
        body = node.body
        if node.unrolled is None:
            return self.graph(body)
        copies, closing = node.unrolled.written_out()
        size = len(copies[0]) if copies else 0
        order = frozenset([edge for edge in self.edges(body) if edge[1] < size])
        names = list(map(self.name_of, body.nodes))  # all copies of a kernel have one name
        graphs = [self.copy(copy, names, order) for copy in copies]
        return chain([*graphs, *[self.part(each, names[-1]) for each in closing]])

    def copy(
        self, copy: BodyCopy, names: Sequence[str], order: frozenset[tuple[int, int]]
    ) -> Graph:
        """The graph of one copy of a body, whose nodes have an order."""
        kept = [(node, name) for node, name in zip(copy, names, strict=False) if node]
        if len(kept) == len(copy):  # most
            return Graph(tuple([self.node(node, name) for node, name in kept]), order)
        parts = [self.part(s, n) if s else _EMPTY for s, n in zip(copy, names, strict=False)]
        return composed(parts, order)

    def node(self, node: DraftNode, name: str | None) -> Node:
        match node:
            case DraftKernel(nests=nests, sources=sources):
                return KernelNode(self.kernel(tuple(nests), name), sources, node.within)
            case FinishedNode(plan_node=plan_node):
                return plan_node if name is None else replace(plan_node)  # each copy is a new node
            case DraftBranch(condition=condition, branches=branches, sources=sources):
                graphs = tuple(map(self.graph, branches))
                if node.boolean:
                    then, otherwise = graphs
                    known = (sources, node.construct, node.within)
                    return IfElseNode(condition, then, otherwise, *known)
                return SwitchNode(condition, graphs, sources, node.construct, node.within)
            case DraftLoop(condition=condition, sources=sources):
                inner = self.body(node)
                within, construct = node.within, node.construct
                loop = WhileNode(condition, inner, sources, construct, within, node.entry)
                if node.scope is None:
                    return loop
                own_name = "_".join((self.name, f"k{next(self.numbers)}", construct.name))
                only = Graph((loop,), frozenset())
                return PersistentKernelNode(own_name, only, node.scope, sources, within)

    def kernel(self, nests: tuple[Nest, ...], name: str | None) -> Kernel:
        """The kernel of these nests. Copies of a body share it if their nests are the same."""
        if name is None:
            return Kernel(self.new_name(nests), nests)
        if nests not in self.kernels:
            self.kernels[nests] = Kernel(name, nests)
        return self.kernels[nests]

    def name_of(self, node: DraftNode) -> str:
        """The name of all copies of a node."""
        return self.new_name(node.nests) if isinstance(node, DraftKernel) else ""

    def new_name(self, nests: Sequence[Nest]) -> str:
        """The program's name, the kernel's number, and the first ops that it applies."""
        return "_".join((self.name, f"k{next(self.numbers)}", *_first_ops(nests)))


_EMPTY = Graph((), frozenset())


def _first_ops(nests: Iterable[Nest]) -> list[str]:
    """The names of the first three ops that are applied."""
    names: list[str] = []
    for nest in nests:
        for expr in nest_expressions(nest):
            if type(expr) is Apply and expr.op.name not in names:
                names.append(expr.op.name)
                if len(names) == 3:
                    return names
    return names
