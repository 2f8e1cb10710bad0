"""Emission: every node of a Plan becomes nodes of a CUDA graph, with the same edges.

Edges between kernels are programmatic (PDL): a kernel starts while its primaries run, and waits for
their end itself. In a chain of small kernels, each takes 0.6 µs then, not 0.85.

The nodes are those of the launch graph, including those that load arguments and allocate scratch:
see `lowering.plan.launch_graph`. A library node becomes as many nodes as the library captures. Each
node is added together with its slots, which name what it keeps alive. Parameters that only a call
knows, the addresses of inputs and outputs, are left null and listed in `Emitted.users`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from typing import Any

from lowering.codegen import KernelCode
from lowering.codegen.kernel_parameters import Channel
from lowering.cuda.compilation.plan_code import PlanCode
from lowering.cuda.graph.built_graph import Timers, Users
from lowering.cuda.graph.copies import COPY_KERNEL, COPY_SOURCE, COPY_THREADS, copy_grid
from lowering.cuda.graph.definition import Definition
from lowering.cuda.graph.embedding import add_embedded
from lowering.cuda.graph.emission import Before, Cell, Emission
from lowering.cuda.graph.handwritten_kernels import custom_launch
from lowering.cuda.graph.launch_nodes import (
    add_allocation,
    add_free,
    add_load,
    add_pointers,
    add_table,
)
from lowering.cuda.graph.library_nodes import capture_library
from lowering.cuda.graph.node_owners import NodeOwners
from lowering.cuda.graph.placement import Placement
from lowering.cuda.graph.pointer_table import entries
from lowering.cuda.graph.small_inputs import ValueSlot
from lowering.cuda.interface import KernelNodeHandle, Launch, has_clusters
from lowering.cuda.libraries.recapture import RecapturedCall
from lowering.plan.conditional_nodes import ConditionalNode, IfElseNode, SwitchNode, WhileNode
from lowering.plan.custom_kernel import CustomKernelNode
from lowering.plan.embedded_graph import EmbeddedGraphNode
from lowering.plan.event_node import EventNode
from lowering.plan.launch_graph import launch_graph
from lowering.plan.launch_nodes import (
    AllocationNode,
    FreeNode,
    LoadNode,
    PointersNode,
    TableNode,
)
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.rounding import ceil_div
from lowering.plan.nodes import Graph, HostNode, LibraryNode, MemcpyNode, Node
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.events import EventUse
from tracegraph.ops.callbacks import CCall


@dataclass(frozen=True, slots=True, eq=False)
class Emitted:
    """What a call writes to in a graph.

    `users` has, for each buffer that a call binds, the kernel nodes and parameter positions that
    hold its address; `recaptured` are the library calls that also hold addresses. `load` is the
    root node that writes the values of small inputs, if any; `timers` has the events at the ends of
    timed sections. `kinds` has the kinds of the nodes that were added for nodes of the Plan that do
    not name theirs.
    """

    users: Users
    recaptured: tuple[RecapturedCall, ...]
    load: KernelNodeHandle | None
    timers: Timers
    kinds: Mapping[Node, tuple[str, ...]]


def emit(
    code: PlanCode,
    values: Mapping[Buffer, ValueSlot],
    placement: Placement,
    channels: Mapping[Channel, int],
    definition: Definition,
    graph: Any,
) -> Emitted:
    """Add the nodes of a Plan to the `graph` of `definition`.

    `channels` has the parameters through which kernels report to the host; their memory is in the
    definition's slots.

    Raises:
        ValueError: the Plan asks for what a CUDA graph cannot hold; the message names the user's
            line.
        FrozenSlotsError: the definition is complete.
    """
    plan, driver = code.plan, definition.driver
    owners = NodeOwners(plan, code.modules)
    table = entries(plan.indirect)
    emission = Emission(code, driver, definition, owners, placement, channels, values, table)
    loaded = dict.fromkeys(module.code for module in code.modules.values())
    definition.slots.retain(*loaded)
    whole = launch_graph(
        plan.graph, tuple(values), plan.indirect, placement.moving, plan.allocated_bytes
    )
    emit_graph(emission, graph, whole)
    recaptured = tuple(emission.recaptured)
    users = dict(emission.users)
    return Emitted(users, recaptured, emission.load, emission.timers, emission.emitted)


def emit_graph(emission: Emission, graph: Any, source: Graph) -> None:
    """Add the nodes and edges of one graph or body, in the order that the Plan has them in."""
    for node in source.nodes:
        if isinstance(node, ConditionalNode):
            emission.conditions[node.condition] = emission.driver.create_condition(graph)
    predecessors: defaultdict[int, set[int]] = defaultdict(set)
    for before, after in source.edges:
        predecessors[after].add(before)
    kinds = emission.definition.kinds
    ends: list[tuple[Any, ...]] = []
    for position, node in enumerate(source.nodes):
        kernels: list[Any] = []
        others: list[Any] = []
        for before in sorted(predecessors[position]):
            is_kernel = emitter_of(source.nodes[before]).is_kernel
            (kernels if is_kernel else others).extend(ends[before])
        add, start = emission.instead.get(type(node)) or emitter_of(node).add, len(kinds)
        ends.append(add(emission, graph, node, Before(kernels, others)))
        if node.graph_nodes is None:
            emission.emitted[node] = tuple(kinds[start:])


def _add_kernels(emission: Emission, graph: Any, node: Node, before: Before) -> tuple[Any, ...]:
    """Add the kernels of a node, a chain in which each depends on the one before."""
    for code in emission.code.unit.codes(node):
        before = Before([_launch(emission, graph, node, code, before)], [])
    return tuple(before.kernels)


def _launch(emission: Emission, graph: Any, node: Node, code: KernelCode, before: Before) -> Any:
    kernel = emission.kernel(code.name)
    grid, cooperative = code.grid, code.cooperative
    if cooperative and code.cluster > 1 and has_clusters(emission.driver.arch):
        cooperative = False  # all blocks of a cluster are resident
    if cooperative:
        grid = (min(grid[0], emission.driver.multiprocessors), 1, 1)
    launch = Launch(kernel, grid, code.block, code.shared_bytes, cooperative)
    cells = [emission.cell(node, parameter) for parameter in code.parameters]
    slots = emission.owners.kernel(code.name, node, code.parameters)
    return emission.add_kernel(graph, before, launch, cells, slots).node


def _add_copy(emission: Emission, graph: Any, node: MemcpyNode, before: Before) -> tuple[Any, ...]:
    nbytes = node.target.type.nbytes
    kernel = emission.kernel(COPY_KERNEL)
    launch = Launch(kernel, copy_grid(ceil_div(nbytes, 16)), (COPY_THREADS, 1, 1))
    operands = (node.target, node.source_buffer)
    cells = [*map(emission.address, operands), Cell(nbytes)]
    slots = emission.owners.kernel(COPY_KERNEL, node, operands)
    return (emission.add_kernel(graph, before, launch, cells, slots).node,)


def _add_custom_kernel(
    emission: Emission, graph: Any, node: CustomKernelNode, before: Before
) -> tuple[Any, ...]:
    """Add a kernel that is written by hand. Those of users do not wait for primaries themselves, so
    that they need full edges.
    """
    code = emission.code.custom[node]
    launch = custom_launch(node, code, emission.driver)
    cells = [
        emission.address(p) if isinstance(p, Buffer) else Cell(p.word) for p in node.parameters
    ]
    emission.definition.slots.retain(code.module.code)
    slots = emission.owners.custom_kernel(node, code.module.nbytes)
    waits = node.code is not None and node.code.waits
    behind = before if waits else Before([], before.nodes)
    return (emission.add_kernel(graph, behind, launch, cells, slots).node,)


def _add_library(
    emission: Emission, graph: Any, node: LibraryNode, before: Before
) -> tuple[Any, ...]:
    return capture_library(emission.libraries, graph, node, before.nodes, emission.owners.of(node))


def _add_host(emission: Emission, graph: Any, node: HostNode, before: Before) -> tuple[Any, ...]:
    call, driver = CCall.of(node.call), emission.driver
    add = partial(driver.add_host, graph, before.nodes, call.function, call.argument)
    return (emission.definition.add(emission.owners.of(node), "host", add, call.owners),)


def _add_event(emission: Emission, graph: Any, node: EventNode, before: Before) -> tuple[Any, ...]:
    use, owner, driver = node.use, None, emission.driver
    if isinstance(use, EventUse):
        action, handle, owner = use.action, use.handle, use.owner
    else:
        owner = driver.create_timer()
        action, handle = "record", owner.handle
        emission.timers.setdefault(use.section, {})[use.action] = owner
    add = partial(driver.add_event, graph, before.nodes, action, handle)
    kind = "event_record" if action == "record" else "wait_event"
    return (emission.definition.add(emission.owners.of(node), kind, add, [owner]),)


def _add_conditional(
    emission: Emission, graph: Any, node: ConditionalNode, before: Before
) -> tuple[Any, ...]:
    condition, _ = emission.conditions[node.condition]
    slots = emission.owners.of(node)
    added, inner_graphs = emission.definition.add_conditional(
        graph, before.nodes, node.kind, condition, len(node.bodies), slots
    )
    for inner_graph, body in zip(inner_graphs, node.bodies, strict=True):
        emit_graph(emission, inner_graph, body)
    return (added,)


@dataclass(frozen=True, slots=True)
class EmissionRule:
    """How a class of nodes is emitted.

    Args:
        add: `add(emission, graph, node, before)` adds what becomes of a node, and returns the nodes
            of the graph that later ones depend on.
        functions: CUDA C++ functions that the nodes need beside those of the Plan, by name.
        is_kernel: whether it is a kernel node, from which programmatic edges may begin.
    """

    add: Callable[[Emission, Any, Any, Before], tuple[Any, ...]]
    functions: Mapping[str, str] = field(default_factory=dict)
    is_kernel: bool = False


EMITTERS: dict[type[Node], EmissionRule] = {
    MemcpyNode: EmissionRule(_add_copy, {COPY_KERNEL: COPY_SOURCE}, is_kernel=True),
    # a programmatic edge from it begins when its blocks have ended, unless it triggers it before
    CustomKernelNode: EmissionRule(_add_custom_kernel, is_kernel=True),
    LibraryNode: EmissionRule(_add_library),
    HostNode: EmissionRule(_add_host),
    EventNode: EmissionRule(_add_event),
    EmbeddedGraphNode: EmissionRule(add_embedded),
    IfElseNode: EmissionRule(_add_conditional),
    SwitchNode: EmissionRule(_add_conditional),
    WhileNode: EmissionRule(_add_conditional),
    LoadNode: EmissionRule(add_load, is_kernel=True),
    TableNode: EmissionRule(add_table, is_kernel=True),
    PointersNode: EmissionRule(add_pointers, is_kernel=True),
    AllocationNode: EmissionRule(add_allocation),
    FreeNode: EmissionRule(add_free),
}
"""How classes of nodes are emitted that have no generated code."""

_OWN_KERNELS = EmissionRule(_add_kernels, is_kernel=True)


def emitter_of(node: Node) -> EmissionRule:
    """How a node is emitted."""
    return EMITTERS.get(type(node), _OWN_KERNELS)
