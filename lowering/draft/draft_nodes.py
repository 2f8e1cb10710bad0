"""DraftNode: a node under construction, while nests are still fused and buffers still renamed.

    Block := DraftNode*
    DraftNode := DraftKernel | FinishedNode | DraftBranch | DraftLoop

A block has the nodes of one region, in an order that respects dependences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import field
from typing import NamedTuple, Protocol, TypeGuard

from lowering.plan.construct import Construct, Path
from lowering.plan.nests.analysis import nest_reads, nest_writes
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Nest
from lowering.plan.nests.rewriting import rename_in_nest
from lowering.plan.nodes import Node
from lowering.plan.target.scope import Scope
from tracegraph.generated.dataclass import dataclass
from tracegraph.user_source import Source

_NO_BUFFERS: frozenset[Buffer] = frozenset()


@dataclass(slots=True, eq=False)
class DraftKernel:
    """Independent nests of one launch. `within` is as in `Node`."""

    nests: list[Nest]
    sources: tuple[Source, ...] = ()
    within: tuple[Path, ...] = ()


@dataclass(slots=True, eq=False)
class FinishedNode:
    """A node of the Plan that is complete from the start: no kernel, and without a body."""

    plan_node: Node


@dataclass(slots=True, eq=False)
class DraftBranch:
    """A conditional with one block per branch. `boolean`: two branches, the first for true.

    `time` is the estimate of scheduling, in µs.
    """

    condition: int
    branches: list[Block]
    boolean: bool
    construct: Construct
    sources: tuple[Source, ...] = ()
    within: tuple[Path, ...] = ()
    time: float = 0


BodyCopy = list["DraftNode | None"]
"""A copy of a body: a copy of each of its nodes, or None for a node that has nothing to do."""


class WrittenOut(NamedTuple):
    """Copies of a body that run one after the other, and the nodes that follow the last one."""

    copies: list[BodyCopy]
    closing: list[DraftNode]

    @property
    def nodes(self) -> list[DraftNode]:
        """All nodes, in order."""
        done = [node for copy in self.copies for node in copy if node is not None]
        return [*done, *self.closing]


class Unrolled(Protocol):
    """How a body is unrolled."""

    def written_out(self) -> WrittenOut:
        """The copies of the body's first nodes; its other nodes stand for the closing ones."""


@dataclass(slots=True, eq=False)
class DraftLoop:
    """A loop. If it is unrolled, `unrolled` makes the copies of its body.

    A loop in one kernel, or inside of one, has the flag `entry`: whether it is entered. The
    outermost one has the `scope` of the kernel. `time` is the estimate of scheduling, in µs.
    """

    condition: int
    body: Block
    construct: Construct
    sources: tuple[Source, ...] = ()
    within: tuple[Path, ...] = ()
    unrolled: Unrolled | None = None
    entry: Buffer | None = None
    scope: Scope | None = None
    time: float = 0


DraftNode = DraftKernel | FinishedNode | DraftBranch | DraftLoop


def is_written_out(node: DraftNode) -> TypeGuard[DraftLoop]:
    """Whether a loop becomes no node of the Plan: its steps stand in the graph one by one."""
    return isinstance(node, DraftLoop) and node.construct.copies == 0


@dataclass(slots=True, eq=False)
class Block:
    """The nodes of one region and the scratch buffers that it owns.

    `sinks` are the buffers of its results. In a loop's body, `carries` maps the buffer of each new
    carry to the buffer from which the next step reads it. `resident` scratch shares its memory with
    nothing in the block.
    """

    nodes: list[DraftNode] = field(default_factory=list)
    owned: set[Buffer] = field(default_factory=set)
    sinks: Sequence[Buffer] = ()
    carries: Mapping[Buffer, Buffer] = field(default_factory=dict)
    resident: Set[Buffer] = frozenset()


def blocks(node: DraftNode) -> Sequence[Block]:
    """The blocks inside a node."""
    if type(node) is DraftKernel:  # most are
        return ()
    match node:
        case DraftBranch(branches=branches):
            return branches
        case DraftLoop(body=body):
            return (body,)
    return ()


# -- accesses --------------------------------------------------------------------------------------


def node_reads(node: DraftNode) -> frozenset[Buffer]:
    """Buffers that a node reads, bodies included."""
    if type(node) is DraftKernel and len(node.nests) == 1:  # most are
        return nest_reads(node.nests[0])
    match node:
        case DraftKernel(nests=nests):
            return _NO_BUFFERS.union(*map(nest_reads, nests))
        case FinishedNode(plan_node=plan_node):
            return plan_node.reads
    inside = [node_reads(s) for b in blocks(node) for s in b.nodes]
    return control_reads(node).union(*inside)


def control_reads(node: DraftNode) -> frozenset[Buffer]:
    """Buffers that a loop or branch itself reads, besides its bodies."""
    if isinstance(node, DraftLoop) and node.entry is not None:
        return frozenset((node.entry,))
    return _NO_BUFFERS


def node_writes(node: DraftNode) -> frozenset[Buffer]:
    """Buffers that a node writes, bodies included."""
    if type(node) is DraftKernel and len(node.nests) == 1:
        return nest_writes(node.nests[0])
    match node:
        case DraftKernel(nests=nests):
            return _NO_BUFFERS.union(*map(nest_writes, nests))
        case FinishedNode(plan_node=plan_node):
            return plan_node.writes
    return _NO_BUFFERS.union(*[node_writes(s) for b in blocks(node) for s in b.nodes])


def walk(block: Block) -> Iterator[DraftNode]:
    """Every node of a block and of the blocks inside it."""
    for node in block.nodes:
        yield node
        for inner in blocks(node):
            yield from walk(inner)


def without_empty(nodes: Sequence[DraftNode]) -> list[DraftNode]:
    """The nodes without kernels of no nests."""
    return [s for s in nodes if not isinstance(s, DraftKernel) or s.nests]


# -- rewriting -------------------------------------------------------------------------------------


def rename(block: Block, names: Mapping[Buffer, Buffer]) -> None:
    """Replace buffers throughout a block, bodies included."""
    block.owned -= names.keys()
    for node in block.nodes:
        rename_in_node(node, names)


def rename_in_node(node: DraftNode, names: Mapping[Buffer, Buffer]) -> None:
    """Replace buffers in one node, bodies included."""
    match node:
        case DraftKernel():
            node.nests = [rename_in_nest(n, names) for n in node.nests]
        case FinishedNode():
            node.plan_node = node.plan_node.with_buffers(names)
        case _:
            if isinstance(node, DraftLoop) and node.entry is not None:
                node.entry = names.get(node.entry, node.entry)
            for inner in blocks(node):
                rename(inner, names)
