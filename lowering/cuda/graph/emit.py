"""Emission: every node of a Plan becomes nodes of a CUDA graph, with the same edges.

Edges between kernels are programmatic (PDL): a kernel starts while its primaries run, and waits for
their end itself. In a chain of small kernels, each takes 0.6 µs then, not 0.85.

A kernel, copy or conditional node is one node; a library node is as many as the library captures.
If each launch allocates its scratch, the allocation node comes first, and all others depend on it.
Each node is added together with its slots, which name what it keeps alive. Parameters that only a
call knows, the addresses of inputs and outputs, are left null and listed in `Emitted.users`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from lowering.codegen import ConditionHandle, Parameter, TableEntry, Unit, Workspace
from lowering.codegen.parameters import Channel, PrintSite
from lowering.cuda.graph.capture import capture, lines
from lowering.cuda.graph.copies import COPY_KERNEL, COPY_THREADS, copy_grid
from lowering.cuda.graph.cublas import WORKSPACE_BYTES, gemm_of
from lowering.cuda.graph.definition import Definition
from lowering.cuda.graph.node_owners import NodeOwners, freeing
from lowering.cuda.graph.placement import Placement, outside
from lowering.cuda.graph.pointer_table import TABLE_KERNEL, entries, part_words, parts, table_bytes
from lowering.cuda.graph.small_inputs import LOAD_KERNEL, ValueSlot, parameter_count, slots_bytes
from lowering.cuda.interface import Driver, KernelNodeHandle, Launch
from lowering.plan.buffer import Buffer
from lowering.plan.nodes import (
    ConditionalNode,
    Graph,
    KernelNode,
    LibraryNode,
    MemcpyNode,
    Node,
    WhileNode,
    walk,
)
from lowering.plan.owners import NodeSlots
from lowering.plan.plan import Plan
from lowering.plan.rounding import ceil_div

Users = Mapping[Buffer, list[tuple[KernelNodeHandle, int]]]


class _Before(NamedTuple):
    """What a node depends on: our kernels, by PDL edges where possible, and other nodes."""

    kernels: list[Any]
    others: list[Any]

    @property
    def nodes(self) -> list[Any]:
        return [*self.others, *self.kernels]


_NOTHING = _Before([], [])


@dataclass(frozen=True, slots=True, eq=False)
class Emitted:
    """What a call writes to in a graph.

    `users` has, for each buffer that a call binds, the kernel nodes and parameter positions that
    hold its address; `load` is the root node that writes the values of small inputs, if any.
    """

    users: Users
    load: KernelNodeHandle | None


@dataclass(frozen=True, slots=True)
class _Cell:
    """A kernel parameter: its value, whether the slots own that memory, the buffer a call binds."""

    value: int
    owned: bool = False
    bound: Buffer | None = None


@dataclass(frozen=True, slots=True)
class _Root:
    """A root node that writes what other nodes read: values of small inputs, or addresses."""

    kernel: KernelNodeHandle
    writes: frozenset[Buffer | TableEntry]


@dataclass(slots=True)
class _State:
    unit: Unit
    module: Any
    driver: Driver
    definition: Definition
    owners: NodeOwners
    placement: Placement
    channels: Mapping[Channel, int]
    values: Mapping[Buffer, ValueSlot]
    table: Mapping[Buffer, int]
    pdl: bool
    roots: list[_Root] = field(default_factory=list)
    conditions: dict[int, tuple[Any, int]] = field(default_factory=dict)
    users: defaultdict[Buffer, list[tuple[KernelNodeHandle, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )


def emit(
    plan: Plan,
    unit: Unit,
    module: Any,
    values: Mapping[Buffer, ValueSlot],
    placement: Placement,
    channels: Mapping[Channel, int],
    definition: Definition,
    graph: Any,
    code_bytes: int,
    *,
    pdl: bool,
) -> Emitted:
    """Add the nodes of `plan` to the `graph` of `definition`, by the kernels in `module`, of
    `code_bytes`.

    `channels` has the parameters through which kernels report to the host; their memory is in the
    definition's slots. `pdl` says whether edges between kernels may be programmatic.

    Raises:
        ValueError: the Plan asks for what a CUDA graph cannot hold; the message names the user's
            line.
        FrozenSlotsError: the definition is complete.
    """
    calls_bind = {*plan.inputs, *plan.outputs}
    operands = placement.addresses.keys() & calls_bind - values.keys()
    driver = definition.driver
    owners = NodeOwners(plan, code_bytes, operands, driver.stored_conditions)
    table = entries(plan.indirect)
    state = _State(
        unit, module, driver, definition, owners, placement, channels, values, table, pdl
    )
    definition.slots.retain(module, driver.stored_conditions)
    load = _add_load(state, graph) if values else None
    _add_table(state, graph, plan)
    leaves = _emit_graph(state, graph, plan.graph, top=True)
    scratch = placement.scratch
    if scratch is not None:
        definition.add_free(graph, leaves, scratch, freeing(scratch.nbytes))
    return Emitted(dict(state.users), load)


def _emit_graph(state: _State, graph: Any, source: Graph, top: bool) -> list[Any]:
    """Add the nodes of one graph or body, in the order that the Plan has them in; the last ones."""
    for node in source.nodes:
        if isinstance(node, ConditionalNode):
            state.conditions[node.condition] = state.driver.create_condition(graph)
    predecessors: defaultdict[int, set[int]] = defaultdict(set)
    for before, after in source.edges | one_by_one(source):
        predecessors[after].add(before)
    scratch = state.placement.scratch
    first = [scratch.node] if top and scratch is not None else []
    ends: list[tuple[Any, ...]] = []
    for position, node in enumerate(source.nodes):
        kernels: list[Any] = []
        others = [] if predecessors[position] else [*first]
        for before in sorted(predecessors[position]):
            (kernels if _is_kernel(source.nodes[before]) else others).extend(ends[before])
        if top and state.roots:
            used = _used(state, node)
            kernels += [r.kernel.node for r in state.roots if not r.writes.isdisjoint(used)]
        ends.append(_emit_node(state, graph, node, _Before(kernels, others)))
    followed = {position for before in predecessors.values() for position in before}
    return [end for position, last in enumerate(ends) if position not in followed for end in last]


def _is_kernel(node: Node) -> bool:
    """Whether a node becomes one of our kernels, which can wait for its primaries."""
    return isinstance(node, KernelNode | MemcpyNode)


def _emit_node(state: _State, graph: Any, node: Node, before: _Before) -> tuple[Any, ...]:
    """Add one node behind others; returns the nodes that later ones depend on."""
    match node:
        case KernelNode():
            return (_add_kernel(state, graph, node, before).node,)
        case MemcpyNode():
            return (_add_copy(state, graph, node, before).node,)
        case LibraryNode():
            return _add_library(state, graph, node, before.nodes)
    assert isinstance(node, ConditionalNode)
    kind = node.kind
    condition, _ = state.conditions[node.condition]
    inner = node.bodies
    slots = state.owners.conditional(kind, node)
    added, inner_graphs = state.definition.add_conditional(
        graph, before.nodes, kind, condition, len(inner), slots
    )
    for inner_graph, body in zip(inner_graphs, inner, strict=True):
        _emit_graph(state, inner_graph, body, top=False)
    return (added,)


def _add_kernel(state: _State, graph: Any, node: KernelNode, before: _Before) -> KernelNodeHandle:
    code = state.unit.kernels[node]
    kernel = state.driver.kernel(state.module, code.name)
    launch = Launch(kernel, code.grid, code.block, code.shared_bytes)
    cells = [_cell(state, node, parameter) for parameter in code.parameters]
    slots = state.owners.kernel(code.name, node, code.parameters)
    return _add(state, graph, before, launch, cells, slots)


def _add_copy(state: _State, graph: Any, node: MemcpyNode, before: _Before) -> KernelNodeHandle:
    nbytes = node.target.type.nbytes
    kernel = state.driver.kernel(state.module, COPY_KERNEL)
    launch = Launch(kernel, copy_grid(ceil_div(nbytes, 16)), (COPY_THREADS, 1, 1))
    operands = (node.target, node.source_buffer)
    cells = [*(_cell(state, node, operand) for operand in operands), _Cell(nbytes)]
    slots = state.owners.kernel(COPY_KERNEL, node, operands)
    return _add(state, graph, before, launch, cells, slots)


def _cell(state: _State, node: Node, parameter: Parameter) -> _Cell:
    """What a node passes for a parameter."""
    match parameter:
        case Buffer():
            return _address(state, parameter)
        case TableEntry(buffer=buffer):
            return _Cell(state.placement.table_address + state.table[buffer], True)
        case Workspace():
            return _Cell(state.placement.workspaces[node], True)
        case ConditionHandle(condition=condition):
            if condition in state.conditions:
                stored = state.driver.stored_conditions is not None
                return _Cell(state.conditions[condition][1], stored)
        case _:
            return _Cell(state.channels[parameter], not isinstance(parameter, PrintSite))
    raise ValueError(
        f"the kernel at {lines(node)} sets condition {parameter.condition}, whose node is in a "
        "body inside; it must be set in the graph or body that holds the node"
    )


def _address(state: _State, buffer: Buffer) -> _Cell:
    """The address of a buffer, as far as it is known."""
    address = state.placement.addresses.get(buffer)
    bound = buffer if buffer.space in ("input", "output") else None
    owned = address is not None and buffer.type.nbytes > 0  # an empty array has nothing
    return _Cell(address or 0, owned, bound)


def _add(
    state: _State,
    graph: Any,
    before: _Before,
    launch: Launch,
    cells: list[_Cell],
    slots: NodeSlots,
) -> KernelNodeHandle:
    """Add a kernel node, and note which of its parameters a call binds."""
    handle = state.definition.add_kernel(
        graph,
        before.others if state.pdl else before.nodes,
        launch,
        [cell.value for cell in cells],
        [cell.owned for cell in cells],
        slots,
        before.kernels if state.pdl else [],
    )
    for position, cell in enumerate(cells):
        if cell.bound is not None:
            state.users[cell.bound].append((handle, position))
    return handle


def _add_load(state: _State, graph: Any) -> KernelNodeHandle:
    """The root node that writes small inputs to their slots."""
    small = list(state.values.values())
    words = parameter_count(small) - 1
    kernel = state.driver.kernel(state.module, LOAD_KERNEL)
    cells = [_Cell(state.placement.values_address, True), *[_Cell(0)] * words]
    readers = [
        node
        for node in walk(state.owners.plan.graph)
        if not isinstance(node, ConditionalNode)
        and not state.values.keys().isdisjoint(_used(state, node))
    ]
    slots = state.owners.load(LOAD_KERNEL, slots_bytes(small), readers)
    load = _add(state, graph, _NOTHING, Launch(kernel, (1, 1, 1), (1, 1, 1)), cells, slots)
    by_table = (TableEntry(buffer) for buffer in state.values)
    state.roots.append(_Root(load, frozenset((*state.values, *by_table))))
    return load


def _add_table(state: _State, graph: Any, plan: Plan) -> None:
    """The root nodes that write the table of addresses."""
    if not plan.indirect:
        return
    kernel = state.driver.kernel(state.module, TABLE_KERNEL)
    slots = state.owners.table(TABLE_KERNEL, table_bytes(plan.indirect))
    words = part_words(plan.indirect)
    for part in parts(plan.indirect):
        start = _Cell(state.placement.table_address + state.table[part[0]], True)
        unused = [_Cell(0)] * (words - len(part))
        cells = [start, *(_address(state, buffer) for buffer in part), *unused]
        root = _add(state, graph, _NOTHING, Launch(kernel, (1, 1, 1), (1, 1, 1)), cells, slots)
        state.roots.append(_Root(root, frozenset(map(TableEntry, part))))


def _add_library(
    state: _State, graph: Any, node: LibraryNode, dependencies: list[Any]
) -> tuple[Any, ...]:
    """Capture a product. Before its first capture, it is run once outside, where the library may
    load code and allocate. That run does not write to the graph's memory, which may be in use.
    """
    addresses, warm_up = state.placement.addresses, state.placement.warm_up
    driver, library = state.driver, state.driver.library()
    gemm = gemm_of(node, addresses.__getitem__)
    workspace = state.placement.library_workspace
    state.definition.slots.retain(library)
    with driver.capture_lock.hold():
        if warm_up is not None:
            spare = warm_up.pointer + WORKSPACE_BYTES  # for all buffers: the result is not read
            moved = {**addresses, **dict.fromkeys(outside(state.owners.plan, node), spare)}
            library.use_workspace(warm_up.pointer, WORKSPACE_BYTES)
            driver.synchronize()
            library.multiply(gemm_of(node, moved.__getitem__))
            driver.synchronize_capture_stream()
        library.use_workspace(workspace, WORKSPACE_BYTES)
        return capture(
            state.definition,
            graph,
            dependencies,
            lambda: library.multiply(gemm),
            node,
            state.owners.library(node),
            [workspace, gemm.a, gemm.b, gemm.c],
            "the product",
        )


def one_by_one(graph: Graph) -> frozenset[tuple[int, int]]:
    """Edges between nodes that must not run at the same time.

    Library calls share a workspace. WHILE nodes side by side end in CUDA_ERROR_LAUNCH_FAILED at
    times, in one launch as in two: see `lowering.cuda.calls.stream_graph`.
    """
    chains = (_having(graph, kind) for kind in (LibraryNode, WhileNode))
    return frozenset(edge for chain in chains for edge in pairwise(chain))


def _having(graph: Graph, kind: type[Node]) -> list[int]:
    """The positions of nodes that are of a kind, or have one in a body."""
    return [
        position
        for position, node in enumerate(graph.nodes)
        if isinstance(node, kind)
        or any(isinstance(inner, kind) for body in node.bodies for inner in walk(body))
    ]


def _used(state: _State, node: Node) -> Set[Buffer | TableEntry]:
    """The buffers that a node and its bodies touch, and entries of the table."""
    if isinstance(node, KernelNode):
        parameters = state.unit.kernels[node].parameters
        return {p for p in parameters if isinstance(p, Buffer | TableEntry)}
    inside = [_used(state, inner) for body in node.bodies for inner in body.nodes]
    return node.accessed_buffers.union(*inside)
