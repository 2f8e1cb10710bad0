"""Assembly: a finished draft becomes a Plan, and its stages become nodes in order of execution."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import count

from lowering.draft.arena_layout import ArenaLayout
from lowering.draft.dependences import edges
from lowering.draft.draft import Draft
from lowering.draft.stage import (
    Block,
    BranchStage,
    Copy,
    KernelStage,
    LoopStage,
    NodeStage,
    Stage,
    is_written_out,
)
from lowering.plan.conditional_nodes import IfElseNode, SwitchNode, WhileNode
from lowering.plan.graph_composition import chain, composed
from lowering.plan.nests.analysis import nest_expressions
from lowering.plan.nests.kernel import Kernel, Nest
from lowering.plan.nodes import Graph, KernelNode, Node
from lowering.plan.persistent_kernel import PersistentKernelNode
from lowering.plan.plan import Plan
from lowering.planning.workspaces import with_workspaces
from tracegraph.ir.record import replace
from tracegraph.ir.scalar_values import Apply


def assemble(draft: Draft, *, per_launch: bool) -> Plan:
    """The Plan of a draft whose memory is assigned."""
    memory, context, program = draft.memory, draft.context, draft.program
    assert memory is not None
    name = _identifier(program.name)
    graph = _Assembler(name, memory).graph(draft.block)
    return Plan(
        name=name,
        graph=with_workspaces(graph) if context.target.graphs else graph,
        inputs=draft.inputs,
        outputs=draft.outputs,
        constants=tuple(zip(draft.constants, program.constants, strict=True)),
        offsets=memory.offsets,
        arena_bytes=memory.nbytes,
        conditions=context.conditions,
        monitors=tuple(context.monitors),
        failures=tuple(context.failures),
        prints=tuple(context.prints),
        callbacks=tuple(context.callbacks),
        donations=draft.donations,
        per_launch=per_launch,
        staged=tuple([source for source, _ in context.staged]),
        as_graph=context.target.graphs,
    )


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
        if any(map(is_written_out, block.stages)):
            return composed([self.part(stage, None) for stage in block.stages], order)
        return Graph(tuple([self.node(stage, None) for stage in block.stages]), order)

    def edges(self, block: Block) -> frozenset[tuple[int, int]]:
        order = self.memory.orders[block]
        return edges(order, self.memory.offsets) if self.memory.shared else order.edges

    def part(self, stage: Stage, name: str | None) -> Graph:
        """The graph of a stage: one node, or those of all steps of a loop."""
        if is_written_out(stage):
            return self.body(stage)
        return Graph((self.node(stage, name),), frozenset())

    def body(self, stage: LoopStage) -> Graph:
        """The graph of a loop's body, as many times as it is copied."""
        body = stage.body
        if stage.unrolled is None:
            return self.graph(body)
        copies, closing = stage.unrolled.written_out()
        size = len(copies[0]) if copies else 0
        order = frozenset([edge for edge in self.edges(body) if edge[1] < size])
        names = list(map(self.name_of, body.stages))  # all copies of a kernel have one name
        graphs = [self.copy(copy, names, order) for copy in copies]
        return chain([*graphs, *[self.part(each, names[-1]) for each in closing]])

    def copy(self, copy: Copy, names: Sequence[str], order: frozenset[tuple[int, int]]) -> Graph:
        """The graph of one copy of a body, whose stages have an order."""
        kept = [(stage, name) for stage, name in zip(copy, names, strict=False) if stage]
        if len(kept) == len(copy):  # most
            return Graph(tuple([self.node(stage, name) for stage, name in kept]), order)
        parts = [self.part(s, n) if s else _EMPTY for s, n in zip(copy, names, strict=False)]
        return composed(parts, order)

    def node(self, stage: Stage, name: str | None) -> Node:
        match stage:
            case KernelStage(nests=nests, sources=sources):
                return KernelNode(self.kernel(tuple(nests), name), sources, stage.within)
            case NodeStage(node=node):
                return node if name is None else replace(node)  # a copy is a node of its own
            case BranchStage(condition=condition, branches=branches, sources=sources):
                graphs = tuple(map(self.graph, branches))
                if stage.boolean:
                    then, otherwise = graphs
                    known = (sources, stage.construct, stage.within)
                    return IfElseNode(condition, then, otherwise, *known)
                return SwitchNode(condition, graphs, sources, stage.construct, stage.within)
            case LoopStage(condition=condition, sources=sources):
                inner = self.body(stage)
                within, construct = stage.within, stage.construct
                loop = WhileNode(condition, inner, sources, construct, within, stage.entry)
                if stage.scope is None:
                    return loop
                own_name = "_".join((self.name, f"k{next(self.numbers)}", construct.name))
                only = Graph((loop,), frozenset())
                return PersistentKernelNode(own_name, only, stage.scope, sources, within)

    def kernel(self, nests: tuple[Nest, ...], name: str | None) -> Kernel:
        """The kernel of these nests. Copies of a body share it if their nests are the same."""
        if name is None:
            return Kernel(self.new_name(nests), nests)
        if nests not in self.kernels:
            self.kernels[nests] = Kernel(name, nests)
        return self.kernels[nests]

    def name_of(self, stage: Stage) -> str:
        """The name of all copies of a stage."""
        return self.new_name(stage.nests) if isinstance(stage, KernelStage) else ""

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
