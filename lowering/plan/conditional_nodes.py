"""Conditional nodes: branches and loops of a Plan's graph, each with graphs as bodies."""

from __future__ import annotations

from typing import ClassVar, Literal

from lowering.plan.construct import Construct, Path
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.buffer_fields import Reads
from lowering.plan.nodes import Graph, Node
from tracegraph.inspection.palette import Tone
from tracegraph.ir.record import record
from tracegraph.user_source import Source

ConditionalKind = Literal["if_else", "switch", "while"]


class ConditionalNode(Node):
    """Base of nodes with bodies that run depending on a condition.

    The condition, an integer, is set by a `SetCondition` of a kernel: before the node, and in the
    body of a loop.
    """

    __slots__ = ()

    kind: ClassVar[ConditionalKind]
    tone: ClassVar[Tone] = "branch"
    noun: ClassVar[str] = "a branch"
    condition: int

    @property
    def graph_nodes(self) -> tuple[str, ...]:
        host_driven = self.construct is not None and self.construct.host_driven
        return () if host_driven else ("conditional",)

    @property
    def title(self) -> str:
        return self.kind.replace("_", " / ")

    @property
    def text(self) -> str:
        return f"{self.kind.partition('_')[0]} condition[{self.condition}]"


@record
class IfElseNode(ConditionalNode):
    """Runs `then` if the condition is non-zero, `otherwise` if not."""

    kind: ClassVar[ConditionalKind] = "if_else"
    body_labels: ClassVar[tuple[str, ...]] = ("then", "else")

    condition: int
    then: Graph
    otherwise: Graph
    sources: tuple[Source, ...] = ()
    construct: Construct | None = None
    within: tuple[Path, ...] = ()


@record
class SwitchNode(ConditionalNode):
    """Runs the branch whose number the condition holds."""

    kind: ClassVar[ConditionalKind] = "switch"

    condition: int
    branches: tuple[Graph, ...]
    sources: tuple[Source, ...] = ()
    construct: Construct | None = None
    within: tuple[Path, ...] = ()

    @property
    def body_labels(self) -> tuple[str, ...]:
        return tuple(f"case {number}" for number in range(len(self.branches)))


@record
class WhileNode(ConditionalNode):
    """Runs the body as long as the condition is non-zero.

    Inside of a kernel, the condition may be that of the flag `entry` at first.
    """

    kind: ClassVar[ConditionalKind] = "while"
    tone: ClassVar[Tone] = "loop"
    noun: ClassVar[str] = "a loop"
    body_labels: ClassVar[tuple[str, ...]] = ("body",)
    # side by side they may end in CUDA_ERROR_LAUNCH_FAILED, as those of several launches do: see
    # `lowering.cuda.streams.exclusive_use`
    exclusive: ClassVar[str] = "loops"

    condition: int
    body: Graph
    sources: tuple[Source, ...] = ()
    construct: Construct | None = None
    within: tuple[Path, ...] = ()
    entry: Reads[Buffer | None] = None

    @property
    def text(self) -> str:
        entered = "" if self.entry is None else f", at first {self.entry}"
        return f"while condition[{self.condition}]{entered}"
