"""Plan: what the graph will be, as data. Nodes, explicit edges, buffers; no CUDA objects.

A Plan is a graph (see `lowering.plan.nodes`), the buffers that its nodes access, and the offsets of
scratch buffers in one arena.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np

from lowering.plan.fallback import Fallback
from lowering.plan.launch_graph import inputs_by_value, launch_graph, moving_calls
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.rounding import round_up
from lowering.plan.nodes import Graph, Node, walk
from lowering.plan.target.hardware import ALIGNMENT
from tracegraph.generated.dataclass import dataclass
from tracegraph.inspection.drawable import Drawable
from tracegraph.ir.callbacks import HostFunction
from tracegraph.ir.effects import Failure, PrintFormat
from tracegraph.ir.record import record
from tracegraph.ir.types import ArrayType
from tracegraph.progress import Monitor
from tracegraph.sharding.sharding import Sharding
from tracegraph.user_source import Source


@dataclass(frozen=True, slots=True)
class Donation:
    """A donated input, and the output that is written over it or the reason why there is none."""

    input: int
    output: int | None
    why: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """What a Plan was made from, if Plans are kept on disk: a digest of the program and of all else
    that planning reads; and what the digest leaves out: names, lines, and constants as arrays.
    """

    key: bytes
    name: str
    sources: tuple[Source, ...]
    constants: tuple[np.ndarray[Any, Any], ...]


@record
class Plan(Drawable):
    """A lowered Program.

    `inputs[i]` and `outputs[i]` are the buffers of argument and result i. An output written over a
    donated input is the same buffer. `constants` pairs const buffers with their data. `offsets` has
    the offsets of scratch buffers in an arena of `arena_bytes`; they are multiples of 256.
    `conditions` counts the conditions, at least one for each conditional node. Nodes in bodies read
    the addresses of the inputs and outputs in `indirect` from a pointer table.

    With `per_launch`, each launch allocates the arena and frees it at its end. If that was asked
    for and is not done, `kept_because` says why.

    `copied` are the inputs and outputs that each launch copies, as they move and nodes that access
    them take fixed addresses. `fallbacks` are what legalization has replaced.

    With `sharding` it is the Plan of each device of a mesh, with types of blocks. `stop_flag` is
    the constant, 0, that stands for the word which ends the loops of a device: they exchange it.

    `graph` is the work. A Plan that is launched `as_graph`, a CUDA graph, has nodes for arguments
    and memory besides: see `launch_graph`. Compiling adds what is known then: `library_bytes`, the
    workspaces of library calls, and in `emitted` the kinds of the nodes that were added for
    nodes which do not say it themselves.
    """

    _displayed_by = "lowering.plan.reports.display"

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
    callbacks: tuple[HostFunction, ...] = ()
    donations: tuple[Donation, ...] = ()
    indirect: tuple[Buffer, ...] = ()
    per_launch: bool = False
    kept_because: str = ""
    copied: tuple[Buffer, ...] = ()
    fallbacks: tuple[Fallback, ...] = ()
    as_graph: bool = False
    sharding: Sharding | None = None
    stop_flag: Buffer | None = None
    library_bytes: int = 0
    emitted: Mapping[Node, tuple[str, ...]] = field(default_factory=dict)
    origin: Origin | None = field(default=None, init=False, repr=False)
    """What it was made from. A Plan that is changed afterwards has none."""
    _launch_graph: Graph | None = field(default=None, init=False, repr=False)

    def of(self, origin: Origin) -> Plan:
        """Itself, made from this."""
        object.__setattr__(self, "origin", origin)
        return self

    @property
    def launch_graph(self) -> Graph:
        """What each launch runs: the work, and as a CUDA graph also what loads small arguments and
        addresses, and what allocates and frees scratch.
        """
        if self._launch_graph is None:
            found = self.graph
            if self.as_graph:
                moving = moving_calls(found)
                found = launch_graph(
                    found, self.by_value, self.indirect, moving, self.allocated_bytes
                )
            object.__setattr__(self, "_launch_graph", found)
            return found
        return self._launch_graph

    @property
    def by_value(self) -> tuple[Buffer, ...]:
        """The inputs that a CUDA graph gets by value, in order."""
        return inputs_by_value(self.graph, self.inputs, self.outputs)

    @property
    def allocated_bytes(self) -> int:
        """What each launch of a CUDA graph allocates: the arena, and workspaces of libraries."""
        return round_up(self.arena_bytes, ALIGNMENT) + self.library_bytes if self.per_launch else 0

    def graph_nodes(self, node: Node) -> tuple[str, ...] | None:
        """The kinds of the nodes of a CUDA graph that a node of the Plan becomes; None if that is
        not known before it is compiled.
        """
        return self.emitted.get(node, node.graph_nodes)

    @property
    def aliases(self) -> Mapping[int, int]:
        """The numbers of outputs that are written over an input, and of the inputs."""
        return {i: b.number for i, b in enumerate(self.outputs) if b.space == "input"}

    @property
    def copied_bytes(self) -> int:
        """The bytes that each launch copies for that."""
        return sum(buffer.type.nbytes for buffer in self.copied)

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
        """How many nodes of each kind each launch has, those of bodies and phases included."""
        return Counter(type(node).__name__ for node in walk(self.launch_graph))
