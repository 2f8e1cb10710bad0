"""Plan: what the graph will be, as data. Nodes, explicit edges, buffers; no CUDA objects.

    Plan  := Graph + buffers + offsets
    Graph := Node* + edges
    Node  := KernelNode | MemcpyNode | LibraryNode
           | IfElseNode | SwitchNode | WhileNode      each with body Graphs

Nodes stand in an order in which they may also be run one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lowering.plan.buffer import Buffer
from lowering.plan.kernel import Kernel
from lowering.plan.nest_analysis import nest_reads, nest_writes
from tracegraph.ir.effects import Failure, Monitor, PrintFormat
from tracegraph.ir.program import Source
from tracegraph.ir.record import altered, record
from tracegraph.ir.types import ArrayType


@dataclass(frozen=True, slots=True)
class Construct:
    """The loop or branch of the user's that a node runs, and how.

    `name` is what the user called. `steps`, of a loop, is the number of its steps where that is
    known before it runs, and `max_steps` a bound on it. `schedule` names the way in which the graph
    carries it out, and `why` says what it was chosen for. `pinned` is the way that the user asked
    for, and `unroll` how many steps one iteration is to make.
    """

    name: str
    schedule: str
    why: str
    steps: int | None = None
    max_steps: int | None = None
    pinned: str | None = None
    unroll: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Inlined:
    """A loop or branch that has no node of its own: what it runs stands in the graph around it.

    `parts` counts its branches, and is 1 for a loop.
    """

    construct: Construct
    parts: int
    is_loop: bool
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """A branch of what is inlined, or the body of a loop."""

    inlined: Inlined
    number: int


@record
class KernelNode:
    """One kernel launch.

    `sources` are the user's lines that it came from, `within` what it is a part of that has no
    node, outermost first.
    """

    kernel: Kernel
    sources: tuple[Source, ...] = ()
    within: tuple[Part, ...] = ()


@record
class MemcpyNode:
    """Copies all bytes of `source_buffer` to `target`, both of one size."""

    target: Buffer
    source_buffer: Buffer
    sources: tuple[Source, ...] = ()


@record
class MatrixOperand:
    """A matrix, or a batch of them, inside a buffer: strides and offset in elements."""

    buffer: Buffer
    offset: int
    batch_stride: int
    row_stride: int
    column_stride: int


@record
class LibraryNode:
    """target[b] = left[b] @ right[b]: `batch` products of (m, k) by (k, n), captured from a
    library. `within` is as in `KernelNode`.
    """

    batch: int
    m: int
    n: int
    k: int
    left: MatrixOperand
    right: MatrixOperand
    target: MatrixOperand
    sources: tuple[Source, ...] = ()
    within: tuple[Part, ...] = ()


@record
class IfElseNode:
    """Runs `then` if the condition is non-zero, `otherwise` if not."""

    condition: int
    then: Graph
    otherwise: Graph
    sources: tuple[Source, ...] = ()
    construct: Construct | None = None


@record
class SwitchNode:
    """Runs the branch whose number the condition holds."""

    condition: int
    branches: tuple[Graph, ...]
    sources: tuple[Source, ...] = ()
    construct: Construct | None = None


@record
class WhileNode:
    """Runs the body as long as the condition is non-zero; it is set before the node and by the
    body.
    """

    condition: int
    body: Graph
    sources: tuple[Source, ...] = ()
    construct: Construct | None = None


ConditionalNode = IfElseNode | SwitchNode | WhileNode

Node = KernelNode | MemcpyNode | LibraryNode | ConditionalNode


@record
class Graph:
    """Nodes and edges; an edge (i, j) has i < j, both positions in `nodes`."""

    nodes: tuple[Node, ...]
    edges: frozenset[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Donation:
    """A donated input: the output that is written over it, or why there is none."""

    input: int
    output: int | None
    why: str = ""


@record
class Plan:
    """A lowered Program.

    `inputs[i]` and `outputs[i]` belong to the i-th argument and result; an output that is written
    over a donated input is that very buffer. `constants` pairs const
    buffers with their data; `offsets` places scratch buffers in an arena of `arena_bytes` (offsets
    are multiples of 256); `conditions` counts the conditions, at least one per conditional node.
    Nodes in bodies read from a table where the inputs and outputs in `tabled` lie.

    With `per_launch`, each launch allocates the arena, and frees it at its end. `kept_because` says
    why it does not, if that was asked for.
    """

    name: str
    graph: Graph
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    constants: tuple[tuple[Buffer, np.ndarray[Any, Any]], ...]
    offsets: Mapping[Buffer, int]
    arena_bytes: int
    conditions: int
    monitors: tuple[Monitor, ...] = ()
    failures: tuple[Failure, ...] = ()
    prints: tuple[PrintFormat, ...] = ()
    donations: tuple[Donation, ...] = ()
    tabled: tuple[Buffer, ...] = ()
    per_launch: bool = False
    kept_because: str = ""

    @property
    def aliases(self) -> Mapping[int, int]:
        """The outputs that are written over an input, each with the number of that."""
        return {i: b.number for i, b in enumerate(self.outputs) if b.space == "input"}

    @property
    def in_types(self) -> tuple[ArrayType, ...]:
        """Types of the arguments."""
        return tuple(b.type for b in self.inputs)

    @property
    def out_types(self) -> tuple[ArrayType, ...]:
        """Types of the results."""
        return tuple(b.type for b in self.outputs)

    @property
    def node_counts(self) -> Counter[str]:
        """How many nodes of each kind there are, those of bodies included."""
        return Counter(type(node).__name__ for node in walk(self.graph))

    def __str__(self) -> str:
        from lowering.plan.text import plan_text

        return plan_text(self)


def bodies(node: Node) -> tuple[Graph, ...]:
    """The graphs inside a conditional node."""
    match node:
        case IfElseNode(then=then, otherwise=otherwise):
            return then, otherwise
        case SwitchNode(branches=branches):
            return branches
        case WhileNode(body=body):
            return (body,)
    return ()


def with_bodies(node: ConditionalNode, graphs: Sequence[Graph]) -> ConditionalNode:
    """The node with other bodies, in the order of `bodies`."""
    match node:
        case IfElseNode():
            return altered(node, then=graphs[0], otherwise=graphs[1])
        case SwitchNode():
            return altered(node, branches=tuple(graphs))
        case WhileNode():
            return altered(node, body=graphs[0])


def walk(graph: Graph) -> Iterator[Node]:
    """Every node of a graph and of the bodies inside."""
    for node in graph.nodes:
        yield node
        for body in bodies(node):
            yield from walk(body)


def own_buffers(node: Node) -> Iterable[Buffer]:
    """The buffers that a node touches, those of its bodies left out."""
    match node:
        case KernelNode(kernel=kernel):
            return frozenset().union(*[nest_reads(n) | nest_writes(n) for n in kernel.nests])
        case MemcpyNode(target=target, source_buffer=source):
            return (target, source)
        case LibraryNode(left=left, right=right, target=result):
            return (left.buffer, right.buffer, result.buffer)
    return ()
