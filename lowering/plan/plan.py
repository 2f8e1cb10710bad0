"""Plan: what the graph will be, as data. Nodes, explicit edges, buffers; no CUDA objects.

A Plan is a graph (see `lowering.plan.nodes`), the buffers that its nodes access, and the offsets of
scratch buffers in one arena.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lowering.plan.buffer import Buffer
from lowering.plan.fallback import Fallback
from lowering.plan.nodes import Graph, walk
from tracegraph.inspection.diagram import Diagram
from tracegraph.inspection.drawable import Drawable
from tracegraph.ir.callbacks import HostFunction
from tracegraph.ir.effects import Failure, PrintFormat
from tracegraph.ir.record import record
from tracegraph.ir.types import ArrayType
from tracegraph.progress import Monitor


@dataclass(frozen=True, slots=True)
class Donation:
    """A donated input, and the output that is written over it or the reason why there is none."""

    input: int
    output: int | None
    why: str = ""


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

    `staged` are the inputs and outputs that each launch copies, as they move and nodes that access
    them take fixed addresses. `fallbacks` are what legalization has replaced.
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
    callbacks: tuple[HostFunction, ...] = ()
    donations: tuple[Donation, ...] = ()
    indirect: tuple[Buffer, ...] = ()
    per_launch: bool = False
    kept_because: str = ""
    staged: tuple[Buffer, ...] = ()
    fallbacks: tuple[Fallback, ...] = ()

    @property
    def aliases(self) -> Mapping[int, int]:
        """The numbers of outputs that are written over an input, and of the inputs."""
        return {i: b.number for i, b in enumerate(self.outputs) if b.space == "input"}

    @property
    def staged_bytes(self) -> int:
        """The bytes that each launch copies for that."""
        return sum(buffer.type.nbytes for buffer in self.staged)

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

    def diagram(self) -> Diagram:
        """The nodes and edges as a picture, to be drawn."""
        from lowering.plan.diagram import plan_diagram

        return plan_diagram(self)

    def __repr__(self) -> str:
        from lowering.plan.text import plan_line

        return f"<Plan {plan_line(self)}>"

    def __str__(self) -> str:
        from lowering.plan.text import plan_text

        return plan_text(self)
