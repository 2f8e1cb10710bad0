"""Program -> Plan."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import count

from lowering.allocation.assign import Arrangement, arrange
from lowering.allocation.dependences import edges
from lowering.allocation.donation import overwrite
from lowering.backends.registry import target_of
from lowering.fusion.dead_stores import prune
from lowering.plan.conditional_nodes import IfElseNode, SwitchNode, WhileNode
from lowering.plan.kernel import Kernel, Nest
from lowering.plan.nest_analysis import nest_expressions
from lowering.plan.nodes import Graph, KernelNode, Node
from lowering.plan.plan import Plan
from lowering.planning.context import Context
from lowering.planning.desugar import desugar
from lowering.planning.region_builder import Binding, RegionBuilder
from lowering.planning.rules import RULES
from lowering.planning.stage import Block, BranchStage, KernelStage, LoopStage, NodeStage, Stage
from lowering.scheduling.schedule import schedule
from lowering.target import Target
from tracegraph.ir.program import Program, Value
from tracegraph.ir.scalar_values import Apply
from tracegraph.staging.scratch import Scratch


def lower(
    program: Program,
    device: str | Target = "host",
    donated: Sequence[int] = (),
    *,
    fusion: bool = True,
    scratch: Scratch = "kept",
) -> Plan:
    """The Plan of a verified program, for a Target or a device such as ``"host"`` or ``"cuda:0"``.

    Outputs may be written over the inputs `donated`.

    Without `fusion`, each equation that computes anything has a kernel of its own: what fused Plans
    are compared with.

    Raises:
        UnschedulableError: the user pinned a schedule that is not possible.
        ValueError: there is no such device.
    """
    target = target_of(device) if isinstance(device, str) else device
    plan = schedule(plan_of(program, target, donated, fusion=fusion), target.costs)
    return replace(plan, per_launch=True) if scratch == "per_launch" else plan


def plan_of(
    program: Program, target: Target, donated: Sequence[int] = (), *, fusion: bool = True
) -> Plan:
    """The Plan with a node for each loop and branch."""
    body = desugar(program).body
    if program.effects:
        body = replace(body, results=body.results[:-1])  # the token: nothing to hand out
    context = Context(target, RULES, fusion)
    n_inputs = len(program.inputs)
    inputs = tuple([context.buffer("input", p.type) for p in body.params[:n_inputs]])
    constants = tuple([context.buffer("const", p.type) for p in body.params[n_inputs:]])
    outputs = tuple([context.buffer("output", atom.type) for atom in body.results])
    bind: dict[Value, Binding] = dict(zip(body.params, (*inputs, *constants), strict=True))
    block = RegionBuilder(context, body, bind, outputs).finish()
    given = [inputs[number] for number in donated]
    outputs, donations = overwrite(block, outputs, given) if given else (outputs, ())
    block.stages[:0] = context.staging()
    block.owned.update(context.staged.values())
    prune(block)
    memory = arrange(block)
    name = _identifier(program.name)
    graph = _Emitter(name, memory).graph(block)
    return Plan(
        name=name,
        graph=graph,
        inputs=inputs,
        outputs=outputs,
        constants=tuple(zip(constants, program.constants, strict=True)),
        offsets=memory.offsets,
        arena_bytes=memory.nbytes,
        conditions=context.conditions,
        monitors=tuple(context.monitors),
        failures=tuple(context.failures),
        prints=tuple(context.prints),
        donations=donations,
    )


@lru_cache(maxsize=256)
def _identifier(name: str) -> str:
    """A function's name as a part of kernels' names."""
    return re.sub(r"\W+", "_", name).strip("_") or "program"


class _Emitter:
    """Turns blocks into graphs, numbering kernels in order of execution."""

    def __init__(self, name: str, memory: Arrangement) -> None:
        self.name = name
        self.memory = memory
        self.numbers = count()

    def graph(self, block: Block) -> Graph:
        nodes = tuple(map(self.node, block.stages))
        order = self.memory.orders[block]
        if not self.memory.shared:
            return Graph(nodes, order.edges)
        return Graph(nodes, edges(order, self.memory.offsets))

    def node(self, stage: Stage) -> Node:
        match stage:
            case KernelStage(nests=nests, sources=sources):
                return KernelNode(self.kernel(tuple(nests)), sources)
            case NodeStage(node=node):
                return node
            case BranchStage(condition=condition, branches=branches, sources=sources):
                graphs = tuple(map(self.graph, branches))
                if stage.boolean:
                    then, otherwise = graphs
                    return IfElseNode(condition, then, otherwise, sources, stage.construct)
                return SwitchNode(condition, graphs, sources, stage.construct)
            case LoopStage(condition=condition, body=body, sources=sources):
                return WhileNode(condition, self.graph(body), sources, stage.construct)

    def kernel(self, nests: tuple[Nest, ...]) -> Kernel:
        """A kernel named after the program, its number, and the first ops that it applies."""
        return Kernel("_".join((self.name, f"k{next(self.numbers)}", *_first_ops(nests))), nests)


def _first_ops(nests: tuple[Nest, ...]) -> list[str]:
    """The names of the first three ops that are applied."""
    names: list[str] = []
    for nest in nests:
        for expr in nest_expressions(nest):
            if type(expr) is Apply and expr.op.name not in names:
                names.append(expr.op.name)
                if len(names) == 3:
                    return names
    return names
